"""A runtime that somebody looks over the shoulder of: before the guard sees a batch, and when it runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..engine.arrays import Float32Array
from ..engine.batch import StepBatch
from ..engine.runtime import PreparedBatch
from .pages import DrilledPages
from .scene import TablesAhead

__all__ = ["WatchedRuntime"]


class WatchedRuntime:
    """Runs batches in pages.

    Args:
        pages: do the work.
        before_guard: may damage the tables that the device gets; called for every batch that is prepared.
        before_step: called when the batch that was prepared last runs.
        after_step: called with that batch, before its pages count as written.
    """

    def __init__(
        self,
        pages: DrilledPages,
        *,
        before_guard: Callable[[TablesAhead], None],
        before_step: Callable[[], None],
        after_step: Callable[[StepBatch], None],
    ) -> None:
        self._pages = pages
        self._before_guard = before_guard
        self._before_step = before_step
        self._after_step = after_step
        self._batch: StepBatch | None = None

    def prepare(self, batch: StepBatch) -> PreparedBatch:
        self._batch = batch
        ahead = TablesAhead(batch, self._pages.prepare(batch))
        self._before_guard(ahead)
        return ahead.prepared

    def forward(self, prepared: PreparedBatch) -> Float32Array:
        assert self._batch is not None
        self._before_step()
        logits = self._pages.forward(prepared)
        self._after_step(self._batch)
        self._pages.written(self._batch)
        return logits

    def page_bytes(self, page: int) -> npt.NDArray[np.uint8]:
        return self._pages.page_bytes(page)
