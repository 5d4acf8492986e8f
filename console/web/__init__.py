"""The web process: pages for people, an API for programs."""
