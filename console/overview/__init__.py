"""What the home page shows: what is served, what is being built, what needs attention."""
