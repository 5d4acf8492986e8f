"""Measure speed: payload ``{"wish": {…}, "deployment_id"}``, result ``{"benchmark_id"}``."""

from __future__ import annotations

from typing import Any

from roundhouse.build.extras import require_extra
from roundhouse.errors import BenchmarkStoppedError, RoundhouseError

from ...benchmarks.recording import record_folder
from ..measuring import JobWatcher, key_in_environment
from ..task import Task, TaskFailedError

__all__ = ["run"]


def run(task: Task) -> dict[str, Any]:
    """Measure it. What was measured before it was stopped, or failed, is kept.

    Raises:
        TaskFailedError: it failed after it had begun; the result names the run.
        BenchmarkStoppedError: the job was cancelled, or the worker ends.
        RoundhouseError: it could not begin.
    """
    require_extra("serve")
    from roundhouse.serve.benchmark.command_line import command_of
    from roundhouse.serve.benchmark.run import run_benchmarks
    from roundhouse.serve.benchmark.wish import BenchmarkWish

    wish = BenchmarkWish.model_validate(task.payload["wish"])
    if wish.tokenizer is not None:
        task.models.require(wish.tokenizer)
    key_in_environment(task)
    watcher = JobWatcher(task, record_folder)
    try:
        (folder,) = run_benchmarks(task.home, [wish], watcher, command=command_of([wish]))
    except BenchmarkStoppedError:
        raise
    except RoundhouseError as error:
        if watcher.folder is None:
            raise
        raise TaskFailedError(error.message, result={"benchmark_id": watcher.folder.name}, hint=error.hint) from None
    finally:
        watcher.write_down()
    return {"benchmark_id": folder.name}
