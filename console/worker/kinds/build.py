"""Build an engine: payload ``{"recipe": {…}}``, result ``{"engine_id", "new"}``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from roundhouse.build.engine import Engine
from roundhouse.build.events import Event, StageFinished, StageProgress, StageStarted
from roundhouse.build.extras import require_extra
from roundhouse.build.pipeline import build
from roundhouse.build.recipe import recipe_from

from ...engines.recording import record_engine
from ..task import Task

__all__ = ["run"]


def run(task: Task) -> dict[str, Any]:
    """Build the recipe's engine, unless it is there already.

    Raises:
        UsageError: the recipe is none, or names what may not be read here.
        RoundhouseError: what the build raises.
    """
    require_extra("build")
    recipe = recipe_from(task.payload["recipe"])
    task.models.require_recipe(recipe)

    @contextmanager
    def publishing(engine: Engine) -> Iterator[None]:
        """The engine is there and in the database at once, or neither; nobody else may have this job by now."""
        with task.publishing() as (session, job):
            record_engine(session, engine, task.host, task.home)
            job.engine_id = engine.manifest.id
            yield

    built = build(recipe, task.home, lambda event: _tell(task, event), publishing=publishing)
    if not built.new:
        task.say("this engine was there already; nothing was built")
        with publishing(built.engine):
            pass
    return {"engine_id": built.engine.manifest.id, "new": built.new}


def _tell(task: Task, event: Event) -> None:
    if isinstance(event, StageStarted):
        task.begin_stage(event.stage, event.detail)
        task.say(f"{event.stage}: {event.detail}")
    elif isinstance(event, StageProgress):
        task.progress(event.done / event.total if event.total else 1.0)
    elif isinstance(event, StageFinished):
        task.end_stage(event.result or None)
        task.say(f"{event.stage}: {event.result or 'done'} ({event.seconds:.1f} s)")
    else:
        task.say(f"warning: {event.message}")
