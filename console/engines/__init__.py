"""Engines: which there are, where they lie, what they became, and what can be asked to be done with them."""
