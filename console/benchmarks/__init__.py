"""Benchmark runs: recorded as workers find them in their homes, asked for, listed, marked and deleted."""
