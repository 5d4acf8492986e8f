"""What somebody likes to see, kept for each account."""
