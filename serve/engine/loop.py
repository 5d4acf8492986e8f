"""The engine loop: requests in, tokens out, one step at a time. One thread drives it.

A step is: schedule, prepare, guard, forward, sample, detokenize, finish. Nothing computed from a page
whose tag differs reaches a client, because the guard runs before the step that would read the page.
"""

from __future__ import annotations

import logging
from typing import Any

from roundhouse.errors import RequestError
from roundhouse.plugins.guard import NullGuard, PageGuard, TorchPageGuard
from roundhouse.plugins.page_tag import NullTracker, PageTagTracker, Tracker

from ..settings import EngineSettings
from .admission import make_sequence
from .batch import StepBatch
from .pool import PagePool
from .progress import append_token, chunk_of
from .request import Failure, Output, Request
from .runtime import PreparedBatch, Runtime
from .sampling import choose_tokens
from .scheduler import Scheduler
from .sequence import Sequence
from .status import Status
from .tokenizer import EngineTokenizer

__all__ = ["EngineLoop"]

_log = logging.getLogger(__name__)


class EngineLoop:
    """Serves requests with one runtime. Not safe for use by several threads at once.

    Args:
        runtime: runs batches; its pages are the pool's, by number.
        settings: limits, pages and whether the guard is on. When it is off, tags are not even issued.
        tokenizer: the model's.
        vocab: token ids of the model are below this.
    """

    def __init__(self, runtime: Runtime[Any], settings: EngineSettings, tokenizer: EngineTokenizer, *, vocab: int) -> None:
        self._runtime = runtime
        self._settings = settings
        self._tokenizer = tokenizer
        self._vocab = vocab
        self._guarded = settings.guard == "tags"
        tracker: Tracker = PageTagTracker(settings.kv.pages) if self._guarded else NullTracker()
        self._guard: PageGuard = TorchPageGuard() if self._guarded else NullGuard()
        self.pool = PagePool(settings.kv.pages, tracker)
        self._scheduler = Scheduler(
            self.pool,
            page_tokens=settings.page_tokens,
            max_batch_size=settings.max_batch_size,
            max_num_tokens=settings.max_num_tokens,
        )
        self._live: dict[str, Sequence] = {}
        self._outputs: list[Output] = []
        self._tokens_in = self._tokens_out = self._tag_checks = self._tag_mismatches = self._steps = 0

    @property
    def has_work(self) -> bool:
        """Whether :meth:`step` has something to run or to return."""
        return bool(self._live or self._outputs)

    def submit(self, request: Request) -> None:
        """Take a request. One that cannot be served comes back from the next :meth:`step` as a Failure.

        An id that is live already is refused, and the live request goes on.
        """
        try:
            sequence = self._accept(request)
        except RequestError as error:
            self._outputs.append(Failure(request_id=request.request_id, code=error.code, message=error.message))
            return
        if sequence.max_new == 0:
            self._outputs.append(chunk_of(sequence, [], "", "length"))
            return
        self._live[request.request_id] = sequence
        self._scheduler.add(sequence)

    def cancel(self, request_id: str) -> None:
        """End a request and give its pages back now; an unknown id is ignored, for it may just have ended."""
        sequence = self._live.get(request_id)
        if sequence is not None:
            self._end(sequence)
            self._outputs.append(chunk_of(sequence, [], "", "cancelled"))

    def step(self) -> list[Output]:
        """Run one step and return everything that came out since the last one.

        The pages of every request that ended are back in the pool (or quarantined) on return.
        """
        self._fail_what_fits_no_more()
        batch, admitted = self._scheduler.schedule()
        self._tokens_in += sum(sequence.prompt_tokens for sequence in admitted)
        if batch.runs:
            self._steps += 1
            batch, prepared = self._guarded_batch(batch)
            if batch.runs:
                self._run(batch, prepared)
        outputs, self._outputs = self._outputs, []
        return outputs

    def status(self) -> Status:
        """Gauges and counters, as of now."""
        return Status(
            running=len(self._scheduler.running),
            waiting=len(self._scheduler.waiting),
            pages_free=self.pool.free,
            pages_used=self.pool.used,
            pages_quarantined=self.pool.quarantined,
            tokens_in=self._tokens_in,
            tokens_out=self._tokens_out,
            tag_checks=self._tag_checks,
            tag_mismatches=self._tag_mismatches,
        )

    def check_integrity(self) -> None:
        """Check that pages, holders and tags agree; meant for idle moments and tests.

        After a fault that the guard has dealt with this passes, unless a page was lost for good: see
        :meth:`PagePool.check_integrity`. The loop goes on serving either way.

        Raises:
            ServeError: naming every violation.
        """
        self._scheduler.check_integrity()

    def _accept(self, request: Request) -> Sequence:
        if request.request_id in self._live:
            raise RequestError("invalid_request", f"request id {request.request_id!r} is in use")
        sequence = make_sequence(
            request,
            self._tokenizer,
            vocab=self._vocab,
            max_seq_len=self._settings.max_seq_len,
            pool_tokens=self._settings.kv.tokens,
        )
        # Pages out of use cut an answer, like the rest of the pool; a prompt they leave no room for fails in the next step.
        room = self._scheduler.usable_tokens + 1 - sequence.prompt_tokens
        sequence.max_new = min(sequence.max_new, max(room, 1))
        return sequence

    def _guarded_batch(self, batch: StepBatch) -> tuple[StepBatch, PreparedBatch]:
        """Prepare a batch and drop the rows whose tags differ.

        What is left is prepared and checked again: only tables that passed are run.
        """
        while True:
            prepared: PreparedBatch = self._runtime.prepare(batch)
            tags = self.pool.tracker.page_tags
            self._tag_checks += self._guarded
            bad = self._guard.bad_rows(prepared.page_table, prepared.page_count, prepared.expected_tags, tags)
            if not bad:
                return batch, prepared
            for row, column in bad:
                self._fail_mismatch(batch.runs[row][0], prepared, row, column)
            batch = batch.without({row for row, _ in bad})
            if not batch.runs:
                return batch, prepared

    def _fail_mismatch(self, sequence: Sequence, prepared: PreparedBatch, row: int, column: int) -> None:
        self._tag_mismatches += 1
        _log.error("request %s, step %d: %s", sequence.request_id, self._steps, self._mismatch(prepared, row, column))
        del self._live[sequence.request_id]
        self._scheduler.condemn(sequence)
        message = f"the KV page at column {column} no longer carries this request's tag; nothing was computed from it"
        self._outputs.append(Failure(request_id=sequence.request_id, code="page_tag_mismatch", message=message))

    def _mismatch(self, prepared: PreparedBatch, row: int, column: int) -> str:
        count, columns = int(prepared.page_count[row]), prepared.page_table.shape[1]
        if not 0 <= count <= columns:
            return f"page tag mismatch, impossible page count {count} of {columns} columns"
        page, expected = int(prepared.page_table[row, column]), int(prepared.expected_tags[row, column])
        tags = self.pool.tracker.page_tags
        found = int(tags[page]) if 0 <= page < len(tags) else "no such page"
        return f"page tag mismatch, column {column}, page {page}, expected tag {expected}, found {found}"

    def _run(self, batch: StepBatch, prepared: PreparedBatch) -> None:
        logits = self._runtime.forward(prepared)
        sampled = batch.sampled
        for sequence, count in batch.runs:
            sequence.computed += count
        for sequence, token in zip(sampled, choose_tokens(logits, [s.sampler for s in sampled]), strict=True):
            try:
                if token is None:
                    raise RequestError("internal", "the model's logits are not finite numbers")
                chunk = append_token(sequence, token, self._tokenizer.eos_ids)
            except RequestError as error:
                self._fail(sequence, error)
                continue
            self._tokens_out += 1
            if chunk.finish_reason is not None:
                self._end(sequence)
            self._outputs.append(chunk)

    def _fail_what_fits_no_more(self) -> None:
        """Fail waiting requests that quarantine or a fault left too few pages for."""
        for sequence in self._scheduler.hopeless():
            self._fail(sequence, RequestError("unavailable", "too many pages are out of use; the engine must be restarted"))

    def _fail(self, sequence: Sequence, error: RequestError) -> None:
        self._end(sequence)
        self._outputs.append(Failure(request_id=sequence.request_id, code=error.code, message=error.message))

    def _end(self, sequence: Sequence) -> None:
        del self._live[sequence.request_id]
        self._scheduler.finish(sequence)
