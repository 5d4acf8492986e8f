"""The engine loop: requests in, tokens out, one step at a time. One thread drives it.

A step is: schedule, prepare, guard, forward, sample, detokenize, finish. Nothing computed from a page
whose tag differs reaches a client, because the guard runs before the step that would read the page.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from roundhouse.errors import RequestError

from ..settings import EngineSettings
from .answers import make_answers
from .batch import StepBatch
from .guides import GuideCompiler
from .integrity import Integrity, IntegrityEvent, Mismatch, create_integrity, mismatch_error
from .live import LiveRequests
from .page_holders import PageHolders
from .pool import PagePool
from .progress import append_token
from .request import Output, Request
from .runtime import PreparedBatch, Runtime
from .sampling import Choice, choose_tokens
from .scheduler import Scheduler
from .sequence import Sequence
from .stages import NO_STAGES, Stages
from .status import Status
from .tokenizer import EngineTokenizer

__all__ = ["EngineLoop"]

_log = logging.getLogger(__name__)

_GUIDE_WAIT_S = 0.01
"""How long to wait for a guide when there is nothing else to do; cancellations and others come in between."""


class EngineLoop:
    """Serves requests with one runtime. Not safe for use by several threads at once.

    Args:
        runtime: runs batches; its pages are the pool's, by number.
        settings: limits, pages and whether the guard is on. When it is off, tags are not even issued.
        tokenizer: the model's.
        vocab: token ids of the model are below this.
        clock: seconds that never go back; deadlines and latencies are told by it.
        stages: hears which stage of a step runs.
        integrity: checks pages; by default what the settings ask for.
        pool: pages tagged by the integrity check's tracker; by default a new one.
        on_integrity_event: hears of every row that was stopped.
    """

    def __init__(
        self,
        runtime: Runtime[Any],
        settings: EngineSettings,
        tokenizer: EngineTokenizer,
        *,
        vocab: int,
        clock: Callable[[], float] = time.monotonic,
        stages: Stages = NO_STAGES,
        integrity: Integrity | None = None,
        pool: PagePool | None = None,
        on_integrity_event: Callable[[IntegrityEvent], None] | None = None,
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._tokenizer = tokenizer
        self._vocab = vocab
        self._clock = clock
        self._stage = stages.stage
        self._integrity = integrity or create_integrity(settings, runtime.page_bytes)
        self._on_integrity_event = on_integrity_event
        self.pool = pool or PagePool(settings.kv.pages, self._integrity.tracker)
        self._scheduler = Scheduler(
            self.pool,
            page_tokens=settings.page_tokens,
            max_batch_size=settings.max_batch_size,
            max_num_tokens=settings.max_num_tokens,
            prefix_reuse=settings.prefix_reuse,
            chunked_prompts=settings.chunked_prompts,
            history=self._integrity.history,
        )
        self._guides = GuideCompiler(tokenizer, vocab)
        self._live = LiveRequests(self._scheduler, clock)
        self._arrivals = self._steps = self._tokens_in = self._cached_tokens = 0

    @property
    def has_work(self) -> bool:
        """Whether :meth:`step` has something to run or to return."""
        return bool(self._live)

    def submit(self, request: Request) -> None:
        """Take a request. One that cannot be served comes back from the next :meth:`step` as a Failure.

        An id that is live already is refused, and the live request goes on.
        """
        try:
            self._live.begin(request, self._accept(request))
        except RequestError as error:
            self._live.refuse(request.request_id, error)

    def cancel(self, request_id: str) -> None:
        """End a request and give its pages back now; an unknown id is ignored, for it may just have ended."""
        self._live.cancel(request_id)

    def step(self) -> list[Output]:
        """Run one step and return everything that came out since the last one.

        The pages of every request that ended are back in the pool (or quarantined) on return; full ones may stay in the
        prefix cache.
        """
        with self._stage("schedule"):
            batch = self._schedule()
        if batch.runs:
            self._steps += 1
            batch, prepared = self._guarded_batch(batch)
            if batch.runs:
                self._run(batch, prepared)
        elif waits := next((each for each in self._scheduler.waiting if not each.sampler.ready()), None):
            waits.sampler.ready(_GUIDE_WAIT_S)  # nobody runs, and its guide is being compiled
        return self._live.take()

    def status(self) -> Status:
        """Gauges and counters, as of now."""
        cached = self._scheduler.cache.evictable
        return Status(
            running=len(self._scheduler.running),
            waiting=len(self._scheduler.waiting),
            pages_free=self.pool.free,
            pages_used=self.pool.used - cached,
            pages_quarantined=self.pool.quarantined,
            pages_cached=cached,
            tokens_in=self._tokens_in,
            tokens_out=self._live.tokens_out,
            cached_tokens=self._cached_tokens,
            steps=self._steps,
            preemptions=self._scheduler.preemptions,
            guard=self._integrity.level,
            tag_checks=self._integrity.checks,
            tag_mismatches=self._integrity.mismatches,
            content_checks=self._integrity.content_checks,
            content_mismatches=self._integrity.content_mismatches,
            ttft=self._live.ttft.snapshot(),
            inter_token=self._live.inter_token.snapshot(),
        )

    def page_holders(self) -> PageHolders:
        """Who holds each page, as of now: meant for the moments between steps at which somebody asks."""
        return self._scheduler.page_holders()

    def prepare(self) -> None:
        """Do what takes a second and would otherwise hold up the first request that needs it."""
        self._guides.prepare()

    def forget_prefixes(self) -> None:
        """Give up every page that the prefix cache keeps."""
        self._scheduler.cache.clear()

    def check_integrity(self) -> None:
        """Check that pages, holders and tags agree; meant for idle moments and tests.

        After a fault that the guard has dealt with this passes, unless a page was lost for good: see
        :meth:`PagePool.check_integrity`. The loop goes on serving either way.

        Raises:
            ServeError: naming every violation.
        """
        self._scheduler.check_integrity()

    def _accept(self, request: Request) -> list[Sequence]:
        if request.request_id in self._live:
            raise RequestError("invalid_request", f"request id {request.request_id!r} is in use")
        waiting = len(self._scheduler.waiting)
        if waiting >= self._settings.max_waiting:
            raise RequestError("overloaded", f"{waiting:,} requests wait already; try again later")
        self._arrivals += 1
        answers = make_answers(
            request,
            self._tokenizer,
            vocab=self._vocab,
            max_seq_len=self._settings.max_seq_len,
            pool_tokens=self._settings.kv.tokens,
            guides=self._guides,
            max_answers=self._settings.max_batch_size,
            arrival=self._arrivals,
        )
        # Pages out of use cut an answer, like the rest of the pool; a prompt they leave no room for fails in the next step.
        room = self._scheduler.usable_tokens + 1 - answers[0].prompt_tokens
        for answer in answers:
            answer.max_new = min(answer.max_new, max(room, 1))
        return answers

    def _schedule(self) -> StepBatch:
        """Clear the line of what cannot run any more, and choose what runs in the next step."""
        self._live.fail_late()
        self._fail_what_cannot_be_guided()
        self._fail_what_fits_no_more()
        self._integrity.history.begin_step(self._steps + 1)
        batch, admitted = self._scheduler.schedule()
        self._tokens_in += sum(sequence.prompt_tokens for sequence in admitted)
        self._cached_tokens += sum(sequence.cached_tokens for sequence in admitted)
        return batch

    def _guarded_batch(self, batch: StepBatch) -> tuple[StepBatch, PreparedBatch]:
        """Prepare a batch and drop the rows whose pages are not right.

        What is left is prepared and checked again: only tables that passed are run.
        """
        while True:
            with self._stage("prepare"):
                prepared: PreparedBatch = self._runtime.prepare(batch)
            with self._stage("guard"):
                bad = self._integrity.bad_rows(prepared)
            if not bad:
                return batch, prepared
            for mismatch in bad:
                self._fail_mismatch(batch.runs[mismatch.row][0], prepared, mismatch)
            gone = {row for row, (sequence, _) in enumerate(batch.runs) if sequence.request_id not in self._live}
            batch = batch.without(gone)
            if not batch.runs:
                return batch, prepared

    def _fail_mismatch(self, sequence: Sequence, prepared: PreparedBatch, mismatch: Mismatch) -> None:
        event = self._integrity.event(mismatch, prepared, sequence)
        _log.error("%s", event)
        if self._on_integrity_event is not None:
            self._on_integrity_event(event)
        live = self._live.get(sequence.request_id)
        if live is not None:  # unless another answer of the same request had a bad page as well
            self._live.condemn(live, mismatch_error(event))

    def _run(self, batch: StepBatch, prepared: PreparedBatch) -> None:
        with self._stage("forward"):
            logits = self._runtime.forward(prepared)
        with self._stage("guard"):
            self._integrity.written(batch)
        sampled = batch.sampled
        with self._stage("schedule"):
            self._scheduler.computed(batch)
        with self._stage("sampling"):
            choices = choose_tokens(logits, [sequence.sampler for sequence in sampled])
        with self._stage("detokenize"):
            self._hand_out(sampled, choices)

    def _hand_out(self, sampled: list[Sequence], choices: list[Choice | RequestError]) -> None:
        """Give each sequence its token and put out the text of it; end what is complete, fail what has no token."""
        now = self._clock()
        for sequence, choice in zip(sampled, choices, strict=True):
            live = self._live.get(sequence.request_id)
            if live is None:  # another answer of the same request failed a moment ago
                continue
            try:
                if isinstance(choice, RequestError):
                    raise choice
                chunk = append_token(sequence, choice, self._tokenizer.eos_ids)
            except RequestError as error:
                self._live.fail(live, error)
                continue
            self._live.hand_out(live, sequence, chunk, now)

    def _fail_what_cannot_be_guided(self) -> None:
        """Fail waiting requests whose guide turned out to be impossible, before anything is computed for them."""
        for sequence in list(self._scheduler.waiting):
            live = self._live.get(sequence.request_id)
            if live is not None and sequence.sampler.ready():
                try:
                    sequence.sampler.start()
                except RequestError as error:
                    self._live.fail(live, error)

    def _fail_what_fits_no_more(self) -> None:
        """Fail waiting requests that quarantine or a fault left too few pages for."""
        for sequence in self._scheduler.hopeless():
            if live := self._live.get(sequence.request_id):
                self._live.fail(
                    live, RequestError("unavailable", "too many pages are out of use; the engine must be restarted")
                )
