"""Builds, and other jobs, as people ask for them and see them."""
