"""Integrity events: collected, listed, and whether all is well."""
