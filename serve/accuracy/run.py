"""Running an evaluation: from a wish to its record."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from roundhouse.build.home import Home
from roundhouse.errors import UsageError

from ..history.store import new_id
from ..measurement.about import Environment
from ..measurement.environment import environment_elsewhere, environment_of
from ..measurement.gpus import find_gpus
from ..measurement.watcher import Watcher
from .asking import Asking
from .records import EvaluationHeader
from .store import EvaluationStore
from .subjects import PreparedSubject, prepare_base, prepare_subject
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
        Asking(chosen, wish, writer, watcher).run(subject, base)
    return writer.folder


def _environment(subject: PreparedSubject, watcher: Watcher) -> Environment:
    if not subject.here:
        return environment_elsewhere()
    return environment_of(subject.recipe, find_gpus(), subject.families, watcher.stopping)
