"""A ground with a real engine: its model runs, and the drill keeps a copy of every page to know for certain what changed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..engine.arrays import Float32Array
from ..engine.batch import StepBatch
from ..engine.runtime import EngineRuntime, PreparedBatch
from ..free_memory import free_memory_for
from ..settings import EngineSettings, Overrides
from .episode import Ground
from .pages import BoolArray

if TYPE_CHECKING:
    from roundhouse.build.engine import Engine

__all__ = ["EnginePages", "engine_grounds"]

_PAGES, _LONGEST_PAGES = 24, 8
"""A pool for some four clients: pages change hands all the time."""


class EnginePages:
    """Pages of a loaded engine.

    Args:
        runtime: the engine's.
    """

    def __init__(self, runtime: EngineRuntime) -> None:
        self.page_tokens = runtime.page_tokens
        self.page_guard = runtime.page_guard
        self._runtime = runtime
        runtime.clear_pages()  # an episode must not see what another left
        self._due: dict[tuple[int, int], npt.NDArray[np.uint8]] = {}
        """What each page held when it was written last, by page and tag."""

    def prepare(self, batch: StepBatch) -> PreparedBatch:
        prepared: PreparedBatch = self._runtime.prepare(batch)
        return prepared

    def forward(self, prepared: PreparedBatch) -> Float32Array:
        return self._runtime.forward(prepared)

    def page_bytes(self, page: int) -> npt.NDArray[np.uint8]:
        return self._runtime.page_bytes(page)

    def written(self, batch: StepBatch) -> None:
        for row, (sequence, count) in enumerate(batch.runs):
            columns = range(sequence.computed // self.page_tokens, (sequence.computed + count - 1) // self.page_tokens + 1)
            for page, tag in _cells(batch, row, columns):
                self._due[page, tag] = self.page_bytes(page).copy()

    def changed_rows(self, batch: StepBatch, page_table: npt.NDArray[np.int32]) -> BoolArray:
        """Tables that name other pages are another matter: this is about what the rows' own pages hold."""
        read = self._read(batch)
        changed = {cell for cells in read for cell in cells if self._is_changed(cell)}
        return np.array([not changed.isdisjoint(cells) for cells in read], dtype=np.bool_)

    def wrong_answers(self, batch: StepBatch) -> BoolArray:
        """Nothing is known of what a model should answer."""
        return np.zeros(len(batch.runs), dtype=np.bool_)

    def overwrite(self, page: int, token: int, source: int) -> None:
        rows = self._rows(page)
        rows[:, token] = ~self._rows(source)[:, token]
        self._runtime.write_page(page, rows.reshape(-1))

    def swap(self, page: int, one: int, other: int) -> None:
        rows = self._rows(page)
        rows[:, [one, other]] = rows[:, [other, one]]
        self._runtime.write_page(page, rows.reshape(-1))

    def _read(self, batch: StepBatch) -> list[list[tuple[int, int]]]:
        """Page and tag of all that rows of a batch read something in that was written before."""
        columns = [-(-sequence.computed // self.page_tokens) for sequence, _ in batch.runs]
        return [_cells(batch, row, range(count)) for row, count in enumerate(columns)]

    def _is_changed(self, cell: tuple[int, int]) -> bool:
        due = self._due.get(cell)
        return due is None or not np.array_equal(self.page_bytes(cell[0]), due)

    def _rows(self, page: int) -> npt.NDArray[np.uint8]:
        """uint8 [fields * layers, page_tokens, row_bytes], a copy."""
        return self.page_bytes(page).reshape(-1, self.page_tokens, self._runtime.row_bytes).copy()


def _cells(batch: StepBatch, row: int, columns: range) -> list[tuple[int, int]]:
    """(page, tag) in these columns of a row."""
    pages, tags = batch.page_table[row, columns].tolist(), batch.expected_tags[row, columns].tolist()
    return list(zip(pages, tags, strict=True))


def engine_grounds(engine: Engine) -> Callable[[Random], Ground]:
    """Load an engine once, and make grounds of it with a small pool.

    Raises:
        ServeError: as :func:`roundhouse.serve.runtimes.create_runtime`.
        EngineError: as :func:`roundhouse.serve.runtimes.create_runtime`.
        SetupError: as :func:`roundhouse.serve.runtimes.create_runtime`.
        UsageError: its target has a loop of its own, or not so many pages fit.
    """
    from ..engine.tokenizer import load_tokenizer
    from ..runtimes import create_runtime, fitted_settings, require_runnable

    require_runnable(engine)
    page_tokens = engine.manifest.recipe.page_tokens
    overrides = Overrides(kv_cache_tokens=_PAGES * page_tokens, max_batch_size=6, max_num_tokens=8 * page_tokens)
    settings = fitted_settings(engine, EngineSettings.for_engine(engine, overrides, free_memory=free_memory_for(engine)))
    runtime, tokenizer = create_runtime(engine, settings), load_tokenizer(engine.checkpoint)
    vocab, longest = engine.manifest.plan.shape.vocab, min(_LONGEST_PAGES * page_tokens, settings.max_seq_len - 1)
    return lambda _: Ground(settings, EnginePages(runtime), tokenizer, vocab, longest, faults_a_step=0.3, steps=40)
