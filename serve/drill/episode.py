"""One life of an engine under random clients, with faults of one kind put in, and what came of each of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from random import Random

from ..engine.integrity import IntegrityEvent
from ..engine.loop import EngineLoop
from ..engine.request import Chunk, Output
from ..engine.sequence import Sequence
from ..engine.tokenizer import EngineTokenizer
from ..settings import EngineSettings
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
_MOST_DRAIN_STEPS = 2000


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
    steps: int
    grants: int
    false_alarms: int
    """Rows stopped although nothing was wrong with them."""
    unexplained: int
    """Rows that were wrong although no fault had been put in."""


Who = tuple[str, int]
"""A request's id, and which of its answers."""


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
        self._kind = kind
        self._draw = draw
        self._now = 0.0
        # One engine in four begins where the tag counter is about to wrap.
        tracker = WitnessTracker(settings.kv.pages, first_tag=draw.choice((1, 1, 1, _LARGEST_TAG - draw.randrange(200))))
        self._integrity = create_check(level, tracker, ground.pages, count=settings.kv.pages, seed=seed)
        self._scene = Scene(draw, FaultyPool(settings.kv.pages, tracker), tracker, ground.pages)
        self._loop = EngineLoop(
            WatchedRuntime(ground.pages, before_guard=self._look_at_tables, before_step=self._note_who_runs),
            settings,
            ground.tokenizer,
            vocab=ground.vocab,
            clock=lambda: self._now,
            integrity=self._integrity,
            pool=self._scene.pool,
            on_integrity_event=lambda event: self._events.append(event),
        )
        self._traffic = Traffic(draw, vocab=ground.vocab, longest=ground.longest, rate=draw.choice((0.3, 0.8, 2.0)))
        self._faults_a_step, self._steps = ground.faults_a_step, ground.steps
        self._fault_due = False
        self._faults: list[Fault] = []
        self._events: list[IntegrityEvent] = []
        self._ahead: list[tuple[Sequence, bool]] = []
        """Who is about to run, and whether it is wrong."""
        self._blamed: dict[Who, list[Fault]] = {}
        """What is wrong with each row of this step, by fault; of a row without a fault, nothing."""
        self._tainted: dict[Who, list[Fault]] = defaultdict(list)
        self._false_alarms = self._unexplained = 0

    def play(self) -> EpisodeResult:
        """Run the ground's steps, fewer when too many pages are out of use, and then until every answer under way has ended."""
        run = 0
        pool = self._scene.pool
        while run < self._steps and pool.quarantined <= (1 - _LEAST_USABLE) * pool.pages:
            self._traffic.come_and_go(self._loop)
            if self._kind is not None and self._draw.random() < self._faults_a_step:
                self._put_in(self._kind)
            self._step()
            run += 1
        self._traffic.leave_the_line(self._loop)
        for _ in range(_MOST_DRAIN_STEPS):
            if not self._loop.has_work:
                break
            self._step()
            run += 1
        return EpisodeResult(self._faults, run, self._scene.tracker.grants, self._false_alarms, self._unexplained)

    def _step(self) -> None:
        self._now += _SECONDS_A_STEP
        self._blamed.clear()
        self._events.clear()
        self._ahead.clear()
        outputs = self._loop.step()
        self._scene.tracker.show(None)
        self._scene.last_tags = self._scene.tracker.tags_now()
        self._scene.running = [sequence for sequence, _ in self._ahead if sequence.grants]
        self._hear_alarms()
        self._count_leaks(outputs)
        self._traffic.take(outputs)
        if self._kind is None:
            self._loop.check_integrity()

    def _put_in(self, kind: FaultName) -> None:
        fault = between_steps(kind, self._scene)
        if fault is not None:
            self._faults.append(fault)
        self._fault_due = True

    def _look_at_tables(self, ahead: TablesAhead) -> None:
        """Damage the tables when a fault is due, and note what is so with each row before the guard sees it."""
        if self._fault_due and self._kind is not None:
            self._fault_due = False
            fault = into_tables(self._kind, self._scene, ahead)
            if fault is not None:
                self._faults.append(fault)
        verdicts = judge(ahead.batch, ahead.prepared, self._scene.tracker, self._scene.pages)
        self._ahead = [(sequence, verdict.wrong) for (sequence, _), verdict in zip(ahead.batch.runs, verdicts, strict=True)]
        for (sequence, _), verdict in zip(ahead.batch.runs, verdicts, strict=True):
            if not any(verdict):
                continue
            # Whoever runs with a wrong table may write into pages of people whom the fault itself does not hit.
            guilty = [fault for fault in self._faults if fault.hits(sequence)] or self._faults[-1:]
            self._unexplained += not guilty
            self._blamed[_who(sequence)] = guilty
            for fault in guilty:
                fault.effective = fault.effective or self._integrity.history.step
        self._scene.last_table = ahead.batch.page_table

    def _note_who_runs(self) -> None:
        for sequence, wrong in self._ahead:
            if wrong:
                self._tainted[_who(sequence)] += self._blamed[_who(sequence)]

    def _hear_alarms(self) -> None:
        for event in self._events:
            guilty = self._blamed.get((event.request_id, event.answer))
            self._false_alarms += guilty is None
            for fault in guilty or ():
                fault.found = fault.found or event.step

    def _count_leaks(self, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Chunk):
                for fault in dict.fromkeys(self._tainted.get((output.request_id, output.index), ())):
                    fault.leaked += len(output.token_ids)


def _who(sequence: Sequence) -> Who:
    return sequence.request_id, sequence.index
