"""Engines as the console knows them."""
