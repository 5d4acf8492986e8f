"""Accuracy: suites that run anywhere and lm-evaluation-harness, written down, compared with a base, gated."""
