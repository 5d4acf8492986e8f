"""What the drill needs of pages, whoever keeps them: run batches, damage rows, and know for certain what changed."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from roundhouse.plugins.guard import PageGuard

from ..engine.arrays import Float32Array
from ..engine.batch import StepBatch
from ..engine.runtime import PreparedBatch

__all__ = ["BoolArray", "DrilledPages"]

BoolArray = npt.NDArray[np.bool_]


class DrilledPages(Protocol):
    """A runtime whose pages can be looked into and damaged."""

    page_tokens: int
    page_guard: PageGuard
    """Compares tags where these pages are."""

    def prepare(self, batch: StepBatch) -> PreparedBatch:
        """As :meth:`roundhouse.serve.engine.runtime.Runtime.prepare`."""
        ...

    def forward(self, prepared: PreparedBatch) -> Float32Array:
        """As :meth:`roundhouse.serve.engine.runtime.Runtime.forward`."""
        ...

    def page_bytes(self, page: int) -> npt.NDArray[np.uint8]:
        """As :meth:`roundhouse.serve.engine.runtime.Runtime.page_bytes`."""
        ...

    def written(self, batch: StepBatch) -> None:
        """A batch has run; its pages are as they should be."""
        ...

    def changed_rows(self, batch: StepBatch, page_table: npt.NDArray[np.int32]) -> BoolArray:
        """Bool [B]: which rows would read, through this table, what was not written for them."""
        ...

    def wrong_answers(self, batch: StepBatch) -> BoolArray:
        """Bool [B]: which rows of a batch that has just run read something wrong, by what came out; where that can be told."""
        ...

    def overwrite(self, page: int, token: int, source: int) -> None:
        """Put the rows of another page's token into a page, every bit of them turned over: they are never the same."""
        ...

    def swap(self, page: int, one: int, other: int) -> None:
        """Let the rows of two tokens of a page change places."""
        ...
