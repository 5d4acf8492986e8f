"""What is asked to be done with an engine's files: once, on each host, and never with what is served."""

from __future__ import annotations

import pytest
from built import ID, add_built
from deployed import add_deployment
from sqlalchemy import select

from roundhouse.console.access.actor import Actor
from roundhouse.console.database.database import Database
from roundhouse.console.engines.actions import ask_remove, ask_verify
from roundhouse.console.errors import ConflictError, NotFoundError
from roundhouse.console.models import AuditEntry, Deployment, EngineReplica, Job
from roundhouse.errors import UsageError

ANN = Actor(1, "ann", "operator", "browser", "127.0.0.1")


def test_each_copy_gets_a_job_on_its_host_and_asking_again_gets_the_same(database: Database) -> None:
    with database.writing() as session:
        add_built(session)
        add_built(session, host="two")
        first = [job.id for job in ask_verify(session, ANN, ID, key="k")]
        assert [job.id for job in ask_verify(session, ANN, ID, key="k")] == first
        assert [job.id for job in ask_verify(session, ANN, ID)] == first  # they are under way
    with database.reading() as session:
        jobs = session.scalars(select(Job).order_by(Job.id)).all()
        assert [(job.kind, job.host, job.home, job.payload) for job in jobs] == [
            ("verify", "one", "/srv/roundhouse", {"engine_id": ID}),
            ("verify", "two", "/srv/roundhouse", {"engine_id": ID}),
        ]
        entries = session.scalars(select(AuditEntry)).all()
        assert [(entry.who, entry.action, entry.subject) for entry in entries] == [("ann", "engine.verify", ID)] * 2


def test_a_key_that_was_used_gets_its_job_after_it_has_ended(database: Database) -> None:
    with database.writing() as session:
        add_built(session)
        (job,) = ask_verify(session, ANN, ID, key="k")
        job.state = "succeeded"
        session.flush()
        assert ask_verify(session, ANN, ID, key="k") == [job]
        assert ask_verify(session, ANN, ID, key="another") != [job]
        assert len(session.scalars(select(AuditEntry)).all()) == 2


def test_a_removal_asked_for_again_with_its_key_gets_its_job_when_nothing_is_left(database: Database) -> None:
    with database.writing() as session:
        add_built(session)
        jobs = ask_remove(session, ANN, ID, key="k")
        jobs[0].state = "succeeded"
        session.query(EngineReplica).delete()
        assert ask_remove(session, ANN, ID, key="k") == jobs
        with pytest.raises(UsageError, match="was used for another request"):
            ask_verify(session, ANN, ID, key="k")
        with pytest.raises(ConflictError, match="no host"):
            ask_remove(session, ANN, ID, key="K")


def test_one_copy_can_be_asked_for(database: Database) -> None:
    with database.writing() as session:
        add_built(session)
        add_built(session, host="two")
        copy = session.scalars(select(EngineReplica).where(EngineReplica.host == "two")).one()
        assert [job.host for job in ask_verify(session, ANN, ID, replica_id=copy.id)] == ["two"]
        with pytest.raises(NotFoundError, match="copy 99"):
            ask_verify(session, ANN, ID, replica_id=99)


def test_what_is_served_is_not_removed(database: Database) -> None:
    with database.writing() as session:
        add_built(session)
        add_deployment(session, engine_id=ID, name="chat", state="stopping")
        with pytest.raises(ConflictError, match="chat"):
            ask_remove(session, ANN, ID)
        assert session.scalars(select(Job)).all() == []
        session.scalars(select(Deployment)).one().state = "stopped"
        session.flush()
        assert [job.kind for job in ask_remove(session, ANN, ID)] == ["remove"]


def test_what_is_nowhere_cannot_be_asked_for(database: Database) -> None:
    with database.writing() as session:
        add_built(session)
        session.query(EngineReplica).delete()
        with pytest.raises(ConflictError, match="no host"):
            ask_remove(session, ANN, ID)
        with pytest.raises(NotFoundError):
            ask_verify(session, ANN, "f" * 16)
