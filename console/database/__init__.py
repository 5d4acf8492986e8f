"""Where the console keeps what it knows."""
