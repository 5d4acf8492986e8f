"""One life of an engine under random clients, with faults of one kind put in, and what came of each of them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from roundhouse.errors import ServeError

from ..engine.batch import StepBatch
from ..engine.loop import EngineLoop
from ..engine.sequence import Sequence
from ..engine.tokenizer import EngineTokenizer
from ..settings import EngineSettings
from .accounts import Accounts
from .faults import Fault, between_steps, into_tables
from .kinds import FaultName
from .levels import Level, create_check
from .pages import DrilledPages
from .scene import FaultyPool, Scene, TablesAhead
from .traffic import Traffic
from .truth import WitnessTracker, judge
from .watched_runtime import WatchedRuntime

__all__ = ["Episode", "EpisodeResult", "Ground"]

_LARGEST_TAG = 2**31 - 1
_SECONDS_A_STEP = 1.0
_LEAST_USABLE = 0.6
"""An engine whose faults have taken more of its pool is started anew, as readiness asks for: an episode ends."""
_MOST_LAST_STEPS = 2000


@dataclass(frozen=True)
class Ground:
    """What an episode is played on."""

    settings: EngineSettings
    pages: DrilledPages
    tokenizer: EngineTokenizer
    vocab: int
    longest: int
    """Tokens of a prompt and its answer together."""
    faults_a_step: float
    steps: int
    """Of an episode, with clients and faults; what is under way then still ends."""


@dataclass(frozen=True)
class EpisodeResult:
    """What came of it."""

    faults: list[Fault]
    false_alarms: int
    unexplained: int
    steps: int
    grants: int
    preemptions: int
    cached_tokens: int
    """Prompt tokens found in pages of others."""
    error: str | None
    """What ended the engine, or why it did not come to an end."""


class Episode:
    """Plays one life.

    Args:
        ground: what it is played on; its pages are used up.
        level: what is checked.
        kind: which faults are put in; None: none, and every book is checked after every step.
        seed: decides everything.
    """

    def __init__(self, ground: Ground, level: Level, kind: FaultName | None, seed: int) -> None:
        draw, settings = Random(f"episode {seed}"), ground.settings
        self._ground = ground
        self._kind = kind
        self._draw = draw
        self._now = 0.0
        # One engine in four begins where the tag counter is about to wrap.
        tracker = WitnessTracker(settings.kv.pages, first_tag=draw.choice((1, 1, 1, _LARGEST_TAG - draw.randrange(200))))
        pool = FaultyPool(settings.kv.pages, tracker)
        self._integrity = create_check(level, tracker, ground.pages, count=settings.kv.pages, seed=seed)
        self._loop = EngineLoop(
            WatchedRuntime(
                ground.pages,
                before_guard=self._look_at_tables,
                before_step=self._note_who_runs,
                after_step=self._check_answers,
            ),
            settings,
            ground.tokenizer,
            vocab=ground.vocab,
            clock=lambda: self._now,
            integrity=self._integrity,
            pool=pool,
            on_integrity_event=lambda event: self._accounts.alarm(event),
        )
        self._scene = Scene(draw, pool, tracker, ground.pages, cancel=self._loop.cancel)
        self._traffic = Traffic(draw, vocab=ground.vocab, longest=ground.longest, rate=draw.choice((0.3, 0.8, 2.0)))
        self._accounts = Accounts()
        self._fault_due = False
        self._steps = 0
        self._ahead: list[tuple[Sequence, bool]] = []
        """Who is about to run, and whether it is wrong."""

    def play(self) -> EpisodeResult:
        """Run the ground's steps, fewer when too many pages are out of use, and then until every answer under way has ended."""
        error = None
        try:
            self._play_on()
            self._come_to_an_end()
        except Exception as problem:  # whatever an engine dies of under a fault, the seed must be told
            error = f"step {self._steps}: {problem!r}"
        status = self._loop.status()
        return EpisodeResult(
            faults=self._accounts.faults,
            false_alarms=self._accounts.false_alarms,
            unexplained=self._accounts.unexplained,
            steps=self._steps,
            grants=self._scene.tracker.grants,
            preemptions=status.preemptions,
            cached_tokens=status.cached_tokens,
            error=error,
        )

    def _play_on(self) -> None:
        pool = self._scene.pool
        while self._steps < self._ground.steps and pool.quarantined <= (1 - _LEAST_USABLE) * pool.pages:
            self._traffic.come_and_go(self._loop)
            if self._kind is not None and self._draw.random() < self._ground.faults_a_step:
                self._fault_due = True
                self._note_fault(between_steps(self._kind, self._scene))
            self._step()

    def _come_to_an_end(self) -> None:
        self._traffic.leave_the_line(self._loop)
        for _ in range(_MOST_LAST_STEPS):
            if not self._loop.has_work:
                return
            self._step()
        raise ServeError(f"answers were still under way after {_MOST_LAST_STEPS:,} more steps")

    def _step(self) -> None:
        self._steps += 1
        self._now += _SECONDS_A_STEP
        self._accounts.begin_step()
        self._ahead = []
        outputs = self._loop.step()
        self._scene.tracker.show(None)
        self._scene.last_tags = self._scene.tracker.tags_now()
        self._scene.ran = [sequence for sequence, _ in self._ahead]
        self._accounts.came_out(outputs)
        self._traffic.take(outputs)
        if self._kind is None:
            self._loop.check_integrity()

    def _look_at_tables(self, ahead: TablesAhead) -> None:
        """Damage the tables when a fault is due, and note what is so with each row before the guard sees it."""
        if self._fault_due and self._kind is not None:
            self._fault_due = False
            self._note_fault(into_tables(self._kind, self._scene, ahead))
        verdicts = judge(ahead.batch, ahead.prepared, self._scene.tracker, self._scene.pages)
        self._ahead = []
        for (sequence, _), verdict in zip(ahead.batch.runs, verdicts, strict=True):
            self._ahead.append((sequence, verdict.wrong))
            self._accounts.look(sequence, verdict, self._integrity.history.step)
        self._scene.last_table = ahead.batch.page_table

    def _note_fault(self, fault: Fault | None) -> None:
        if fault is not None:
            self._accounts.faults.append(fault)

    def _note_who_runs(self) -> None:
        self._accounts.ran(sequence for sequence, wrong in self._ahead if wrong)

    def _check_answers(self, batch: StepBatch) -> None:
        for (sequence, _), wrong in zip(batch.runs, self._scene.pages.wrong_answers(batch), strict=True):
            if wrong:
                self._accounts.answered_wrongly(sequence)
