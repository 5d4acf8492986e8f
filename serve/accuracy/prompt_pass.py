"""What a model thinks of every token of a text, through the engine's real path: its weights, its attention, its KV pages.

Prompts are packed into steps as the engine loop packs them, read and written through pages that the pool tagged and the guard
checked, in chunks of the engine's own size. Only the logits that are asked for are computed, and they are reduced at once: a
text of 2,000 tokens over a vocabulary of 150,000 would take 1.2 GB of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from roundhouse.errors import ServeError

from ..engine.arrays import Float32Array
from ..engine.batch import StepBatch, make_batch
from ..engine.integrity import Integrity, mismatch_error
from ..engine.pool import PagePool
from ..engine.prefix_cache import PrefixCache
from ..engine.runtime import PreparedBatch, Runtime
from ..engine.sequence import Sequence as EngineSequence
from ..settings import EngineSettings

__all__ = ["Passage", "PromptPass"]

_MOST_LOGIT_BYTES = 64 * 2**20
"""Of one step, in float32."""

Row = TypeVar("Row")
Reduce = Callable[[int, int, Float32Array], list[Row]]


@dataclass(frozen=True)
class Passage:
    """Tokens that are run, and from which of them on logits are wanted."""

    tokens: list[int]
    first: int
    """The first token whose logits are wanted: what it says of the token after it."""


@dataclass(eq=False)
class _Run(Generic[Row]):
    number: int
    sequence: EngineSequence
    first: int
    rows: list[Row] = field(default_factory=list)


class PromptPass:
    """Runs prompts and samples nothing. Nobody else may use the pool meanwhile, and no page of it may be held.

    Args:
        runtime: runs batches; its pages are the pool's, by number.
        pool: the pages.
        integrity: checks them; its tracker is the pool's.
        settings: limits of a step.
        vocab: logits of a token.
        make_sequence: makes one of token ids, or raises what is wrong with them.
        check: called before every step; raises when the evaluation is asked to end.
    """

    def __init__(
        self,
        runtime: Runtime[Any],
        pool: PagePool,
        integrity: Integrity,
        settings: EngineSettings,
        *,
        vocab: int,
        make_sequence: Callable[[list[int]], EngineSequence],
        check: Callable[[], None],
    ) -> None:
        self._runtime = runtime
        self._pool = pool
        self._integrity = integrity
        self._settings = settings
        self._most_rows = max(1, _MOST_LOGIT_BYTES // (4 * vocab))
        self._make_sequence = make_sequence
        self._check = check

    def run(self, passages: Sequence[Passage], reduce: Reduce[Row]) -> Iterator[tuple[int, list[Row]]]:
        """Run every passage; those that begin alike share pages, as requests do.

        Args:
            passages: what is run.
            reduce: makes of logits float32 [R, V] what is kept, a value a row; is told the passage's number and the first
                row's place in it.

        Yields:
            A passage's number and its rows, from ``first`` to the last token.

        Raises:
            ServeError: a passage does not fit the engine, or a page was not what it should be.
        """
        cache = PrefixCache(self._pool)
        waiting = deque(enumerate(passages))
        running: list[_Run[Row]] = []
        try:
            while waiting or running:
                self._check()
                self._admit(waiting, running, cache)
                self._step(running, cache, reduce)
                for done in [run for run in running if not run.sequence.remaining]:
                    running.remove(done)
                    self._pool.release(done.sequence.grants)
                    yield done.number, done.rows
        finally:
            for run in running:
                self._pool.release(run.sequence.grants)
            cache.clear()

    def _admit(self, waiting: deque[tuple[int, Passage]], running: list[_Run[Row]], cache: PrefixCache) -> None:
        page_tokens = self._settings.page_tokens
        while waiting and len(running) < self._settings.max_batch_size:
            number, passage = waiting[0]
            sequence = self._make_sequence(passage.tokens)
            # What is found in pages is not computed again, and so has no logits.
            keys = sequence.page_keys(passage.first // page_tokens, page_tokens)
            if any(_computes(run, keys[:1]) for run in running):
                return  # it waits for the pages that it begins with
            shared = cache.match(keys)
            missing = -(-len(passage.tokens) // page_tokens) - len(shared)
            if self._pool.free < missing:
                cache.evict(missing - self._pool.free)
            grants = self._pool.grant(missing)
            if grants is None:
                self._pool.release(shared)
                if not running:
                    raise ServeError(
                        f"a text of {len(passage.tokens):,} tokens does not fit the engine's KV pages",
                        hint="Raise kv_cache_tokens.",
                    )
                return
            sequence.grants = [*shared, *grants]
            sequence.computed = len(shared) * page_tokens
            running.append(_Run(number, sequence, passage.first))
            waiting.popleft()

    def _step(self, running: list[_Run[Row]], cache: PrefixCache, reduce: Reduce[Row]) -> None:
        counts: dict[EngineSequence, int] = {}
        tokens, rows = self._settings.max_num_tokens, self._most_rows
        for run in running:
            unwanted = max(0, run.first - run.sequence.computed)
            count = min(tokens, run.sequence.remaining, unwanted + rows)
            if count:
                counts[run.sequence] = count
                tokens -= count
                rows -= max(0, count - unwanted)
        batch = make_batch(list(counts.items()))
        by_sequence = {run.sequence: run for run in running}
        wanted = [_wanted(by_sequence[sequence], count) for sequence, count in batch.runs]
        ends = batch.query_start[1:].tolist()
        places = [np.arange(end - rows, end) for end, rows in zip(ends, wanted, strict=True)]
        logits = self._forward(replace(batch, sample_rows=np.concatenate(places).astype(np.int64)))
        self._integrity.written(batch)
        for (sequence, count), rows in zip(batch.runs, wanted, strict=True):
            run = by_sequence[sequence]
            before = sequence.computed // self._settings.page_tokens
            sequence.computed += count
            if rows:
                run.rows += reduce(run.number, sequence.computed - rows, logits[:rows])
                logits = logits[rows:]
            full = sequence.computed // self._settings.page_tokens
            if full > before:
                cache.offer(sequence.page_keys(full, self._settings.page_tokens), sequence.grants, sequence.root)

    def _forward(self, batch: StepBatch) -> Float32Array:
        prepared: PreparedBatch = self._runtime.prepare(batch)
        for mismatch in self._integrity.bad_rows(prepared):
            raise mismatch_error(self._integrity.event(mismatch, prepared, batch.runs[mismatch.row][0]))
        return self._runtime.forward(prepared)


def _wanted(run: _Run[Any], count: int) -> int:
    """How many of a run's next ``count`` tokens, the last ones, have logits that are wanted."""
    return max(0, run.sequence.computed + count - max(run.first, run.sequence.computed))


def _computes(run: _Run[Any], keys: list[bytes]) -> bool:
    """Whether a run is still computing pages, and begins with this one."""
    return bool(keys) and run.sequence.computed < run.first and run.sequence.keys[:1] == keys
