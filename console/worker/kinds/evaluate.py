"""Measure accuracy: payload ``{"wish": {…}, "deployment_id"}``, result ``{"evaluation_id", "gate"}``."""

from __future__ import annotations

from typing import Any

from roundhouse.build.extras import require_extra
from roundhouse.errors import BenchmarkStoppedError, RoundhouseError
from roundhouse.serve.threads import prepare_threads

from ...evaluations.recording import record_folder
from ..measuring import JobWatcher, key_in_environment
from ..task import Task, TaskFailedError

__all__ = ["run"]


def run(task: Task) -> dict[str, Any]:
    """Evaluate. A gate that was not passed is a result, and no failure of the job.

    Raises:
        TaskFailedError: it failed after it had begun; the result names the evaluation.
        BenchmarkStoppedError: the job was cancelled, or the worker ends.
        RoundhouseError: it could not begin.
    """
    require_extra("serve")
    prepare_threads()
    from roundhouse.serve.accuracy.run import evaluate
    from roundhouse.serve.accuracy.store import read_evaluation
    from roundhouse.serve.accuracy.wish import EvaluationWish
    from roundhouse.serve.accuracy.wishing import command_of

    wish = EvaluationWish.model_validate(task.payload["wish"])
    if wish.data is not None:
        task.models.require(wish.data)
    key_in_environment(task)
    watcher = JobWatcher(task, record_folder)
    try:
        folder = evaluate(task.home, wish, watcher, command=command_of(wish))
    except BenchmarkStoppedError:
        raise
    except RoundhouseError as error:
        if watcher.folder is None:
            raise
        raise TaskFailedError(error.message, result={"evaluation_id": watcher.folder.name}, hint=error.hint) from None
    finally:
        watcher.write_down()
    return {"evaluation_id": folder.name, "gate": read_evaluation(folder).gate.state}
