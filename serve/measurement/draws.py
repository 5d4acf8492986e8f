"""What is drawn for a measurement depends on its seed and on what it is for, and on nothing else."""

from __future__ import annotations

import random

__all__ = ["draw"]


def draw(seed: int, *purpose: object) -> random.Random:
    """Random numbers that depend on nothing but the seed and what they are for."""
    return random.Random(":".join(map(str, (seed, *purpose))))
