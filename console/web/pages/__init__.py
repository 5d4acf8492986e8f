"""Pages for people; each can be read without JavaScript."""
