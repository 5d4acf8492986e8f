"""Asking an evaluation's questions: the base first, then the subject, and every answer is written down as it comes."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from roundhouse.errors import BenchmarkStoppedError, RoundhouseError, ServeError

from ..history import RecordWriter, read_lines
from ..history.record import storable
from ..measurement.watcher import Watcher
from .records import Item, TaskScore, Unmeasured
from .scoring import score_of
from .store import BASE, ITEMS, SCORES, UNMEASURED, read_items
from .subjects import PreparedSubject, StoredBase
from .suites.contract import DETAILS, DOUBT, Answered, Ground, Task
from .view import score_words
from .wish import EvaluationWish

__all__ = ["Asking"]


@dataclass
class _Answers:
    """What the base made of one task."""

    items: dict[int, Item] = field(default_factory=dict)
    note: str | None = None
    problem: str | None = None


class Asking:
    """Asks one evaluation's questions.

    Args:
        tasks: what is asked.
        wish: within which limits.
        writer: of the evaluation's record.
        watcher: hears how it goes, and may stop it.
    """

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
        """Ask the base, and then the subject.

        Raises:
            ServeError: somebody could not be asked, or no task could be measured.
            BenchmarkStoppedError: the watcher's ``stopping`` was set.
        """
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
            score = self._score(ground, task, items, note, time.monotonic() - began)
        except RoundhouseError as error:
            if isinstance(error, BenchmarkStoppedError):
                raise
            self._writer.add(UNMEASURED, Unmeasured(task=task.name, reason=error.message, is_share=task.is_share))
            self._watcher.say(f"{task.name} was not measured: {error.message}")
            return
        self._writer.add(SCORES, score)
        self._measured += 1
        self._watcher.say(score_words(score))
        if score.uncompared:
            self._watcher.say(f"{task.name}: no comparison with the base: {score.uncompared}")

    def _score(self, ground: Ground, task: Task, items: Sequence[Item], note: str, seconds: float) -> TaskScore:
        details, doubt = (ground.memory.pop(left, None) for left in (DETAILS, DOUBT))
        note = f"{note}; {doubt}" if doubt else note
        uncompared = self._uncompared(task, items)
        return score_of(task, items, seconds=seconds, note=note, details=details, uncompared=uncompared)

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
    """What is written down of an answer.

    Raises:
        ServeError: what the model computes is no number.
    """
    if not math.isfinite(answered.score):
        raise ServeError(f"question {answered.number} has the score {answered.score}: what the model computes is no number")
    texts = {"asked": storable(answered.asked), "answered": storable(answered.answered)}
    return Item(task=task.name, **{**asdict(answered), **texts})
