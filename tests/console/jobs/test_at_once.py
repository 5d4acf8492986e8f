"""Wishes that come at the same moment: a form sent twice, one name for two deployments."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from built import ID, PLACE, add_built
from populated import add_worker
from sqlalchemy import func, select

from roundhouse.console.access.actor import Actor
from roundhouse.console.access.sealing import Sealer
from roundhouse.console.database.database import Database
from roundhouse.console.deployments.actions import ask_deploy
from roundhouse.console.deployments.settings import DeploymentSecrets, DeploymentSettings
from roundhouse.console.drills.actions import ask_drill
from roundhouse.console.drills.records import DrillWish
from roundhouse.console.engines.actions import ask_verify
from roundhouse.console.errors import ConflictError
from roundhouse.console.models import AuditEntry, Deployment, Job

ANN = Actor(1, "ann", "admin", "browser", "127.0.0.1")
T = TypeVar("T")


def at_once(database: Database, ask: Callable[[object], T]) -> list[T | Exception]:
    """The same wish by several threads, each in a transaction of its own."""
    answers: list[T | Exception] = []
    ready = threading.Barrier(5)

    def run() -> None:
        ready.wait()
        try:
            with database.writing() as session:
                answers.append(ask(session))
        except Exception as error:
            answers.append(error)

    threads = [threading.Thread(target=run) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def deploy(key: str | None) -> Callable[[object], str]:
    wish = DeploymentSettings(engine_id=ID, name="same")
    return lambda session: ask_deploy(session, ANN, wish, DeploymentSecrets(), Sealer("k" * 40), idempotency_key=key)[0].id


def with_engine(database: Database) -> None:
    with database.writing() as session:
        add_built(session)
    add_worker(database, "one", str(PLACE.path))


def test_one_key_is_one_deployment(database: Database) -> None:
    with_engine(database)
    assert len(set(map(str, at_once(database, deploy("a key of mine"))))) == 1
    with database.reading() as session:
        counts = [session.scalar(select(func.count()).select_from(table)) for table in (Deployment, Job, AuditEntry)]
    assert counts == [1, 1, 1]


def test_one_name_is_one_deployment(database: Database) -> None:
    with_engine(database)
    answers = at_once(database, deploy(None))
    assert sorted(isinstance(answer, ConflictError) for answer in answers) == [False, True, True, True, True]


def test_a_copy_is_verified_once(database: Database) -> None:
    with_engine(database)
    answers = at_once(database, lambda session: [job.id for job in ask_verify(session, ANN, ID)])
    assert len(set(map(str, answers))) == 1


def test_one_key_is_one_job_and_one_entry_in_the_audit_log(database: Database) -> None:
    answers = at_once(database, lambda session: ask_drill(session, ANN, DrillWish(), key="a key of mine").id)
    assert len(set(map(str, answers))) == 1
    with database.reading() as session:
        assert len(session.scalars(select(AuditEntry)).all()) == 1
