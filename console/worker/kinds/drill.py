"""Play a drill: payload ``{"engine_id", "seed", "steps", "faults", "guards"}``, each may be null; the result is the report."""

from __future__ import annotations

from typing import Any

from roundhouse.build.extras import require_extra
from roundhouse.build.store import EngineStore
from roundhouse.serve.threads import prepare_threads

from ..engine_folder import engine_folder
from ..task import Task, TaskFailedError

__all__ = ["run"]


def run(task: Task) -> dict[str, Any]:
    """Put faults into a running engine and count which ones are stopped in time.

    Raises:
        TaskFailedError: a fault that the level can see was not stopped, or something was stopped that is right.
        EngineError: the engine is not in this home, or damaged.
        UsageError: an unknown fault or level.
    """
    require_extra("serve")
    prepare_threads()
    from roundhouse.serve.drill.choices import kinds_of, levels_of
    from roundhouse.serve.drill.drill import cases_of
    from roundhouse.serve.drill.play import play_drill
    from roundhouse.serve.drill.report import report_as_json
    from roundhouse.serve.drill.view import drill_verdict

    wanted = task.payload
    engine = EngineStore(task.home).open(engine_folder(task)[0]) if wanted.get("engine_id") is not None else None
    cases = cases_of(levels_of(wanted.get("guards"), None), kinds_of(wanted.get("faults")))

    def tell(done: int, total: int) -> None:
        task.progress(done / total)
        level, fault = cases[done]
        task.say(f"case {done + 1} of {total}: {fault or 'no faults'} at {level.guard}")

    with task.stage("drill", f"{len(cases)} cases, {'no model' if engine is None else engine.manifest.name}"):
        report = play_drill(task.home, engine, cases, seed=wanted.get("seed"), steps=wanted.get("steps"), on_case=tell)
    verdict, result = drill_verdict(report), report_as_json(report)
    task.say(verdict)
    if not report.passed:
        hint = "The log has the commands that play its failures again."
        raise TaskFailedError("the drill failed: see its report", result=result, hint=hint)
    return result
