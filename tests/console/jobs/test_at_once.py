"""Wishes that come at the same moment: a form sent twice, one name for two deployments."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from built import ID, PLACE, add_built
from deploying import in_a_thread, wait_for
from populated import add_worker
from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from roundhouse.console.access.actor import Actor
from roundhouse.console.access.sealing import Sealer
from roundhouse.console.builds.actions import ask_cancel, ask_retry
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.deployments.actions import ask_deploy
from roundhouse.console.deployments.settings import DeploymentSecrets, DeploymentSettings
from roundhouse.console.deployments.telling import tell
from roundhouse.console.deployments.unloading import ask_undeploy, give_up
from roundhouse.console.drills.actions import ask_drill
from roundhouse.console.drills.records import DrillWish
from roundhouse.console.engines.actions import ask_verify
from roundhouse.console.errors import ConflictError
from roundhouse.console.jobs import Claim, NewJob, Worklist, enqueue
from roundhouse.console.models import AuditEntry, Deployment, Job, JobKind, Worker

ANN = Actor(1, "ann", "admin", "browser", "127.0.0.1")
T = TypeVar("T")


def at_once(database: Database, ask: Callable[[Session], T]) -> list[T | Exception]:
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


def deploy(key: str | None) -> Callable[[Session], str]:
    wish = DeploymentSettings(engine_id=ID, name="same")
    return lambda session: ask_deploy(session, ANN, wish, DeploymentSecrets(), Sealer("k" * 40), idempotency_key=key)[0].id


def wait_until_held_up(session: Session, count: int, what: str) -> None:
    """Until so many others wait for a lock. On SQLite they wait for this whole transaction."""
    held_up = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
    if session.get_bind().dialect.name == "postgresql":
        wait_for(lambda: session.scalar(held_up) == count, what)


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


def test_a_start_that_is_tried_again_and_a_new_one_of_its_name_are_one_deployment(database: Database) -> None:
    with_engine(database)
    with database.writing() as session:
        deploy(None)(session)
        tell(session.scalars(select(Deployment)).one(), "failed")
        job = session.scalars(select(Job)).one()
        job.state = "failed"
    wishes: Iterator[Callable[[Session], object]] = itertools.cycle(
        [lambda session: ask_retry(session, ANN, job.id).id, deploy(None)]
    )
    at_once(database, lambda session: next(wishes)(session))
    with database.reading() as session:
        assert len(session.scalars(select(Deployment).where(Deployment.state == "starting")).all()) == 1


def test_a_copy_is_verified_once(database: Database) -> None:
    with_engine(database)
    answers = at_once(database, lambda session: [job.id for job in ask_verify(session, ANN, ID)])
    assert len(set(map(str, answers))) == 1


def test_one_key_is_one_job_and_one_entry_in_the_audit_log(database: Database) -> None:
    answers = at_once(database, lambda session: ask_drill(session, ANN, DrillWish(), key="a key of mine").id)
    assert len(set(map(str, answers))) == 1
    with database.reading() as session:
        assert len(session.scalars(select(AuditEntry)).all()) == 1


def test_unloading_while_a_worker_takes_the_start(database: Database) -> None:
    """The worker has the job's row and goes on to the deployment's, as who unloads does."""
    with_engine(database)
    (id_,) = {answer for answer in at_once(database, deploy("a key of mine")) if isinstance(answer, str)}

    def unload() -> None:
        with database.writing() as session:
            ask_undeploy(session, ANN, id_)

    with database.writing() as session:
        start = session.scalars(select(Job).with_for_update()).one()
        unloading = in_a_thread(unload)
        wait_until_held_up(session, 1, "who unloads waits for the worker")
        start.state, start.lease_until = "running", utc_now()
        session.scalars(select(Deployment).with_for_update()).one()
    unloading.join()
    with database.reading() as session:
        jobs = session.scalars(select(Job).order_by(Job.id)).all()
    told = [(job.kind, job.state, job.cancel_requested_at is not None) for job in jobs]
    assert told == [("deploy", "running", True), ("undeploy", "queued", False)]


@pytest.mark.parametrize("other", [ask_undeploy, give_up])
def test_cancelling_the_end_while_somebody_else_locks_the_jobs_in_their_order(
    database: Database, other: Callable[[Session, Actor, str], object]
) -> None:
    with_engine(database)
    (id_,) = {answer for answer in at_once(database, deploy("a key of mine")) if isinstance(answer, str)}
    with database.writing() as session:
        start = session.scalars(select(Job)).one()
        start.state, start.lease_until = "running", utc_now()
        end = ask_undeploy(session, ANN, id_).id
        session.execute(update(Worker).values(ended_at=utc_now()))
    failed: list[Exception] = []

    def run(wish: Callable[[Session], object]) -> None:
        try:
            with database.writing() as session:
                wish(session)
        except Exception as error:
            failed.append(error)

    with database.writing() as session:
        # A worker has the row of the start, for which one waits first, and then the one who may have the end's already.
        session.scalars(select(Job).where(Job.kind == "deploy").with_for_update()).one()
        people = [in_a_thread(lambda: run(lambda session: other(session, ANN, id_)))]
        wait_until_held_up(session, 1, "one waits for the worker")
        people.append(in_a_thread(lambda: run(lambda session: ask_cancel(session, ANN, end))))
        wait_until_held_up(session, 2, "who cancels waits, too")
    for each in people:
        each.join()
    assert failed == []


def test_two_lanes_do_not_take_two_jobs_of_one_deployment(database: Database) -> None:
    with_engine(database)
    (id_,) = {answer for answer in at_once(database, deploy("a key of mine")) if isinstance(answer, str)}
    with database.writing() as session:
        enqueue(session, NewJob(kind="undeploy", subject="same", deployment_id=id_))
    with database.reading() as session:
        worker = session.scalars(select(Worker)).one()
    taken: list[Claim | None] = []
    kinds: tuple[JobKind, ...] = ("deploy", "undeploy")
    with database.writing() as session:
        session.scalars(select(Deployment).with_for_update()).one()
        lanes = [in_a_thread(lambda kind=kind: taken.append(Worklist(database).claim(worker, [kind]))) for kind in kinds]
        wait_until_held_up(session, 2, "both lanes wait for the deployment")
    for lane in lanes:
        lane.join()
    assert sorted(claim is None for claim in taken) == [False, True]
    with database.reading() as session:
        assert sorted(session.scalars(select(Job.state))) == ["queued", "running"]
