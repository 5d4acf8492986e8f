"""Workers as they are read: what they are, whether they are there, and what they do."""
