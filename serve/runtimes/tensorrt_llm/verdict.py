"""What all ranks say of a step's pages, as one answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...engine.arrays import Int32Array

__all__ = ["worst"]


def worst(answers: Sequence[Int32Array]) -> Int32Array:
    """The first column that any rank found bad: a row that is wrong on one GPU runs on none.

    Args:
        answers: of each rank, int32 [B]: the first bad column of each row, or −1.

    Returns:
        int32 [B], the same on every rank that has the same answers.
    """
    found = np.stack(answers)
    endless = np.iinfo(np.int32).max
    first = np.where(found < 0, endless, found).min(axis=0)
    return np.where(first == endless, -1, first).astype(np.int32)
