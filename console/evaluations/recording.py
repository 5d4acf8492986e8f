"""Writing down what evaluations there are, and what came of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from roundhouse.build.home import Home
from roundhouse.errors import ServeError
from roundhouse.serve.accuracy.records import Evaluation, TaskScore

from ..benchmarks.files import KeptFile, keep_files
from ..benchmarks.silence import may_record
from ..database.base import utc_now
from ..database.upserts import insert_missing
from ..models import EvaluationRun, EvaluationScore
from ..worker.wire import plain_text, plain_value
from .content import evaluation_files, read_content

__all__ = ["record_evaluation", "record_folder", "worst_difference"]


def record_folder(session: Session, folder: Path, host: str, home: Home, job_id: int | None = None) -> None:
    """Make the database agree with an evaluation's folder.

    Args:
        session: of a transaction that writes.
        folder: of the evaluation.
        host: the name of this host.
        home: where it lies.
        job_id: the job that measures it; None leaves what is known of that.

    Raises:
        ServeError: its header cannot be read, or it is a copy of another.
    """
    content = read_content(folder)
    if content.header.id != folder.name:
        raise ServeError(f"{folder} is a copy of evaluation {content.header.id}", hint="Its folder has its id as its name.")
    files = evaluation_files(folder) if content.state != "running" else ()
    record_evaluation(session, content, host, str(home.path), job_id=job_id, files=files)


def record_evaluation(
    session: Session,
    content: Evaluation,
    host: str,
    home: str,
    *,
    job_id: int | None = None,
    files: Iterable[KeptFile] = (),
) -> None:
    """Write down an evaluation as it is now.

    One that was deleted here stays deleted, and one that another home has, too, stays that home's.

    Args:
        session: of a transaction that writes.
        content: the evaluation.
        host: of its home.
        home: where its folder is.
        job_id: the job that measures it; None leaves what is known of that.
        files: raw ones.
    """
    facts = _facts(content, host)
    facts |= {"host": host, "home": home}
    insert_missing(session, EvaluationRun, [facts | {"id": content.header.id}])
    found = select(EvaluationRun).where(EvaluationRun.id == content.header.id).with_for_update()
    row = session.scalars(found.execution_options(populate_existing=True)).one()
    if not may_record(session, row, host, home):
        return
    changed = facts if job_id is None else facts | {"job_id": job_id}
    for name, value in changed.items():
        setattr(row, name, value)
    session.execute(delete(EvaluationScore).where(EvaluationScore.evaluation_id == row.id))
    scores = {score.task: score for score in content.scores}  # one that is told again is told anew
    insert_missing(session, EvaluationScore, [_score(row.id, *each) for each in enumerate(scores.values())])
    keep_files(session, row.id, files)
    session.flush()


def worst_difference(scores: Iterable[TaskScore]) -> float | None:
    """Points of 100 of the share that is furthest down; None where none was compared."""
    shares = [each for each in scores if each.is_share and each.difference is not None]
    return min((_points(each) for each in shares), default=None)


def _points(score: TaskScore) -> float:
    value = score.difference.value if score.difference is not None else 0.0
    return 100 * value * (1 if score.higher_is_better else -1)


def _facts(content: Evaluation, host: str) -> dict[str, Any]:
    header = content.header
    base = header.base.name if header.base is not None else None
    sought = (header.id, header.subject.name, header.subject.model, base or "", host, *header.tasks)
    facts = {
        "state": content.state,
        "problem": content.problem,
        "engine_id": header.subject.engine_id,
        "name": header.subject.name,
        "model": header.subject.model,
        "base_name": base,
        "gate": content.gate.state,
        "gate_points": content.gate.limit_points,
        "gate_reasons": plain_value(list(content.gate.reasons)),
        "worst_difference": worst_difference(content.scores),
        "began_at": header.began_at,
        "ended_at": content.ended_at,
        "recorded_at": utc_now(),
        "sought": "\n".join(sought).lower(),
        "header": _plain(header),
    }
    return {name: plain_text(value) if isinstance(value, str) else value for name, value in facts.items()}


def _score(evaluation_id: str, position: int, score: TaskScore) -> dict[str, Any]:
    return {
        "evaluation_id": evaluation_id,
        "task": plain_text(score.task),
        "position": position,
        "value": score.value,
        "stderr": score.stderr,
        "difference": score.difference and score.difference.value,
        "record": _plain(score),
    }


def _plain(record: BaseModel) -> Any:
    """As JSON that any database takes."""
    return plain_value(json.loads(record.model_dump_json()))
