"""Drills: faults put into a running engine on purpose, and what its page checks made of them."""
