"""Who may use the console, and how that is known."""
