"""Running an evaluation: the base is asked first, then the subject, and every answer is written down as it comes."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from roundhouse.build.home import Home
from roundhouse.errors import BenchmarkStoppedError, RoundhouseError, ServeError, UsageError

from ..history import RecordWriter, read_lines
from ..history.store import new_id
from ..measurement.about import Environment
from ..measurement.environment import environment_elsewhere, environment_of
from ..measurement.gpus import find_gpus
from ..measurement.watcher import Watcher
from .records import EvaluationHeader, Item, TaskScore, Unmeasured
from .scoring import score_of
from .store import BASE, ITEMS, SCORES, UNMEASURED, EvaluationStore, read_items
from .subjects import PreparedSubject, StoredBase, prepare_base, prepare_subject
from .suites.contract import DETAILS, DOUBT, Answered, Ground, Task
from .tasks import tasks_named
from .wish import EvaluationWish

__all__ = ["evaluate"]


def evaluate(home: Home, wish: EvaluationWish, watcher: Watcher, *, command: str) -> Path:
    """Evaluate, and write down each answer as soon as it is there.

    The base is asked everything before the subject is loaded, so that only one of them is in memory at a time. A task that
    cannot be measured does not keep the others from it.

    Args:
        home: has the engines, and gets the evaluation.
        wish: whom to ask what.
        watcher: hears how it goes, and may stop it.
        command: evaluates again.

    Returns:
        The evaluation's folder, finished.

    Raises:
        UsageError: the wish cannot be fulfilled; nothing was begun.
        EngineError: an engine is damaged; nothing was begun.
        SetupError: what it needs is not installed; nothing was begun.
        ServeError: something failed, or no task could be measured; what was answered before is kept.
        BenchmarkStoppedError: the watcher's ``stopping`` was set; what was answered before is kept.
    """
    tasks = tasks_named(wish.tasks, data=Path(wish.data) if wish.data else None)
    subject, base = prepare_subject(home, wish), prepare_base(home, wish)
    if base is None and wish.tasks and all(task.compares for task in tasks):
        raise UsageError(f"{tasks[0].name} compares with a base, and there is none", hint="Name one with --against.")
    header = EvaluationHeader(
        id=new_id(),
        began_at=datetime.now(UTC),
        subject=subject.subject,
        base=None if base is None else base.subject,
        # Without a base there is nothing to compare, and nobody asked for it by name.
        tasks=tuple(task.name for task in tasks if base is not None or wish.tasks or not task.compares),
        limit=wish.limit,
        seed=wish.seed,
        gate_points=wish.gate_points,
        command=command,
        environment=_environment(subject, watcher),
    )
    chosen = [task for task in tasks if task.name in header.tasks]
    with EvaluationStore(home).begin(header) as writer:
        watcher.began(writer.folder)
        _Run(chosen, wish, writer, watcher).run(subject, base)
    return writer.folder


def _environment(subject: PreparedSubject, watcher: Watcher) -> Environment:
    if not subject.here:
        return environment_elsewhere()
    return environment_of(subject.recipe, find_gpus(), subject.families, watcher.stopping)


@dataclass
class _Answers:
    """What the base made of one task."""

    items: dict[int, Item] = field(default_factory=dict)
    note: str | None = None
    problem: str | None = None


class _Run:
    def __init__(self, tasks: Sequence[Task], wish: EvaluationWish, writer: RecordWriter, watcher: Watcher) -> None:
        self._tasks = tasks
        self._wish = wish
        self._writer = writer
        self._watcher = watcher
        self._base: dict[str, _Answers] = {}
        self._remembered: dict[str, Any] | None = None
        self._measured = 0
        self._done = 0.0

    def run(self, subject: PreparedSubject, base: PreparedSubject | StoredBase | None) -> None:
        """Ask the base, and then the subject."""
        rooms = [subject.room]
        if isinstance(base, PreparedSubject):
            rooms.append(base.room)
            self._remembered = self._asked(base, rooms, "the base", self._ask_base)
            gc.collect()  # its weights and pages, before others are loaded
        elif base is not None:
            self._take_stored(base)
        self._asked(subject, rooms, "the subject", self._ask_subject)
        if not self._measured:
            raise ServeError("no task could be measured", hint="`roundhouse evaluate show latest` tells why.")

    def _asked(
        self, who: PreparedSubject, rooms: list[int | None], called: str, ask: Callable[[Ground, Task], None]
    ) -> dict[str, Any]:
        self._watcher.stage("load", f"loading {called}, {who.subject.name}")
        scorer = who.open(self._watcher.stopping)
        try:
            room = min((room for room in [*rooms, scorer.room] if room is not None), default=None)
            ground = Ground(scorer, self._wish.seed, self._wish.limit, room, progress=self._progress)
            for task in self._tasks:
                self._watcher.stage(task.name, f"asking {called} {task.name}")
                self._done = 0.0
                ask(ground, task)
        finally:
            scorer.close()
        return ground.memory

    def _ask_base(self, ground: Ground, task: Task) -> None:
        answers = self._base[task.name] = _Answers()
        try:
            answers.note = self._require(ground, task)
            self._collect(ground, task, None, lambda item: self._keep_base(answers, item))
        except RoundhouseError as error:
            if isinstance(error, BenchmarkStoppedError):
                raise
            answers.problem = error.message
            self._watcher.say(f"{task.name}: the base was not measured: {error.message}")

    def _keep_base(self, answers: _Answers, item: Item) -> None:
        self._writer.add(BASE, item)
        answers.items[item.number] = item

    def _take_stored(self, base: StoredBase) -> None:
        notes = {score.task: score.note for score in read_lines(base.folder, SCORES, TaskScore)}
        for task in self._tasks:
            answers = self._base[task.name] = _Answers(note=notes.get(task.name))
            if base.header.seed != self._wish.seed and task.suite == "roundhouse":
                answers.problem = f"evaluation {base.header.id} drew other questions, with seed {base.header.seed}"
            elif task.name not in notes:
                answers.problem = f"evaluation {base.header.id} did not measure it"
        for item in read_items(base.folder):
            if item.task in self._base and self._base[item.task].problem is None:
                self._base[item.task].items[item.number] = item

    def _ask_subject(self, ground: Ground, task: Task) -> None:
        began = time.monotonic()
        items: list[Item] = []
        try:
            note = self._require(ground, task)
            base = self._comparable(task, note)
            self._collect(ground, task, self._remembered, lambda item: items.append(self._paired(item, base)))
            if not items:
                raise ServeError("nothing of it fits here")
        except RoundhouseError as error:
            if isinstance(error, BenchmarkStoppedError):
                raise
            self._writer.add(UNMEASURED, Unmeasured(task=task.name, reason=error.message, is_share=task.is_share))
            self._watcher.say(f"{task.name} was not measured: {error.message}")
            return
        details, doubt = (ground.memory.pop(left, None) for left in (DETAILS, DOUBT))
        note = f"{note}; {doubt}" if doubt else note
        uncompared, seconds = self._uncompared(task, items), time.monotonic() - began
        score = score_of(task, items, seconds=seconds, note=note, details=details, uncompared=uncompared)
        self._writer.add(SCORES, score)
        self._measured += 1
        self._watcher.say(_told(score))
        if score.uncompared:
            self._watcher.say(f"{task.name}: no comparison with the base: {score.uncompared}")

    def _uncompared(self, task: Task, items: Sequence[Item]) -> str | None:
        """Why no item is compared, where there is a base."""
        answers = self._base.get(task.name)
        if answers is None or task.compares or any(item.base_score is not None for item in items):
            return None
        return answers.problem or "the base was asked other questions, or cuts texts into other tokens"

    def _paired(self, item: Item, base: dict[int, Item]) -> Item:
        """The item with the base's score, where it was asked the same; perplexities only of the same tokens."""
        theirs = base.get(item.number)
        if theirs is not None and (theirs.asked, theirs.tokens) == (item.asked, item.tokens):
            item = item.model_copy(update={"base_score": theirs.score})
        self._writer.add(ITEMS, item)
        return item

    def _comparable(self, task: Task, note: str) -> dict[int, Item]:
        answers = self._base.get(task.name)
        if answers is None:
            return {}
        if task.compares and self._remembered is None:
            raise ServeError("it compares with a base that can be asked, not with stored answers")
        if task.compares and answers.problem:
            raise ServeError(f"the base was not measured: {answers.problem}")
        if answers.items and answers.note != note:
            answers.problem = f"it was asked in another way: {answers.note}"
        return {} if answers.problem else answers.items

    def _require(self, ground: Ground, task: Task) -> str:
        """The task's note; raises when what it needs is not there."""
        if reason := ground.scorer.lacks(task.needs(ground.scorer)):
            raise ServeError(reason)
        return task.note(ground)

    def _collect(self, ground: Ground, task: Task, base: dict[str, Any] | None, keep: Callable[[Item], None]) -> None:
        size = max(1, task.size(ground))
        for done, answered in enumerate(task.answer(ground, base), start=1):
            keep(_item(task, answered))
            self._progress(done / size)

    def _progress(self, fraction: float) -> None:
        """Tell how much of a task is done: answers that came together are judged one after another, which is no step back."""
        self._done = max(self._done, min(1.0, fraction))
        self._watcher.progress(self._done)


def _item(task: Task, answered: Answered) -> Item:
    return Item(
        task=task.name,
        number=answered.number,
        score=answered.score,
        tokens=answered.tokens,
        part=answered.part,
        asked=answered.asked,
        answered=answered.answered,
        wanted=answered.wanted,
    )


def _told(score: TaskScore) -> str:
    scale, unit = (100, " %") if score.is_share or score.metric == "agreement" else (1, "")
    told = f"{score.task}: {scale * score.value:.1f}{unit}"
    if score.stderr is not None:
        told += f" ± {scale * score.stderr:.1f}"
    if score.difference is not None:
        told += f", base {scale * score.difference.base:.1f}{unit}"
    return f"{told} ({score.items} items, {score.seconds:.0f} s)"
