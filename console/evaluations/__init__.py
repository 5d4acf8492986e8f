"""Evaluations of accuracy: recorded as workers find them in their homes, asked for, listed and deleted."""
