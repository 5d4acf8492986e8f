"""Asking for deployments and for their end."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from deploying import ENGINE_ID, HOST, OPERATOR, SEALER, VIEWER, add_engine, add_worker
from pydantic import SecretStr
from sqlalchemy import select, update

from roundhouse.build.home import Home
from roundhouse.console.builds.actions import ask_cancel, ask_retry
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.deployments.actions import ask_deploy
from roundhouse.console.deployments.again import deploy_again
from roundhouse.console.deployments.settings import DeploymentSecrets, DeploymentSettings
from roundhouse.console.deployments.telling import tell
from roundhouse.console.deployments.unloading import ask_undeploy, forget, give_up
from roundhouse.console.errors import ConflictError, ForbiddenError, NotFoundError
from roundhouse.console.models import AuditEntry, Deployment, EngineRecord, EngineReplica, Job, Worker
from roundhouse.errors import UsageError

WANTED = DeploymentSettings(engine_id=ENGINE_ID, name="m")
NONE = DeploymentSecrets()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def ready(database: Database, home: Home) -> Database:
    add_engine(database, home)
    add_worker(database, home)
    return database


def deploy(database: Database, wanted: DeploymentSettings = WANTED, key: str | None = None) -> tuple[str, int]:
    with database.writing() as session:
        row, job = ask_deploy(session, OPERATOR, wanted, NONE, SEALER, idempotency_key=key)
        return row.id, job.id


def test_a_wish_is_a_row_a_job_and_an_entry_in_the_audit_log(ready: Database, home: Home) -> None:
    wanted = WANTED.model_copy(update={"keyed": True})
    with ready.writing() as session:
        row, job = ask_deploy(session, OPERATOR, wanted, DeploymentSecrets(api_key=SecretStr("geheim")), SEALER)
    with ready.reading() as session:
        row, job = session.get_one(Deployment, row.id), session.get_one(Job, job.id)
        (entry,) = session.scalars(select(AuditEntry))
        everything = [str(vars(each)) for each in (row, job, entry)]
    assert (row.state, row.name, row.host, row.home) == ("starting", "m", HOST, str(home.path))
    assert DeploymentSettings.model_validate(row.settings) == wanted
    assert SEALER.open(row.sealed or "") == {"api_key": "geheim"}
    assert (job.kind, job.state, job.host, job.home, job.deployment_id) == ("deploy", "queued", HOST, str(home.path), row.id)
    assert (entry.who, entry.action, entry.subject) == ("olga", "deployment.start", row.id)
    assert not any("geheim" in each for each in everything)


def test_the_same_key_gives_the_same_deployment(ready: Database) -> None:
    assert deploy(ready, key="k") == deploy(ready, key="k")
    with ready.writing() as session, pytest.raises(UsageError, match="'k' was used for another request"):
        ask_deploy(session, OPERATOR, WANTED.model_copy(update={"name": "n"}), NONE, SEALER, idempotency_key="k")
    with ready.reading() as session:
        assert len(session.scalars(select(Deployment)).all()) == 1


@pytest.mark.parametrize("target", ["tensorrt", "trtllm-pytorch"])
def test_engines_that_another_server_serves_are_refused_with_what_to_do(ready: Database, target: str) -> None:
    with ready.writing() as session:
        session.execute(update(EngineRecord).values(target=target))
    with pytest.raises(ConflictError, match=f"is for {target}, and only engines for torch are served") as refused:
        deploy(ready)
    assert "roundhouse export" in (refused.value.hint or "")
    with ready.reading() as session:
        assert session.scalars(select(Deployment)).all() == []


def test_what_cannot_be_is_refused(ready: Database) -> None:
    deploy(ready)
    keyed = WANTED.model_copy(update={"name": "n", "keyed": True})
    key = DeploymentSecrets(api_key=SecretStr("k"))
    refused = [
        (WANTED, NONE, ConflictError, "m is served on here already"),
        (WANTED.model_copy(update={"engine_id": "no"}), NONE, NotFoundError, "there is no engine no"),
        (keyed, NONE, UsageError, "no API key to ask for"),
        (WANTED.model_copy(update={"name": "n"}), key, UsageError, "nobody is asked for"),
        (keyed, DeploymentSecrets(api_key=SecretStr("a b")), UsageError, "visible ASCII"),
        (keyed.model_copy(update={"keyed": False, "control_header": "h"}), NONE, UsageError, "a name and a value"),
    ]
    for wanted, secrets, error, why in refused:
        with ready.writing() as session, pytest.raises(error, match=why):
            ask_deploy(session, OPERATOR, wanted, secrets, SEALER)
    with ready.writing() as session, pytest.raises(ForbiddenError):
        ask_deploy(session, VIEWER, WANTED, NONE, SEALER)


def test_it_goes_where_the_engine_lies_and_a_worker_is_alive(ready: Database) -> None:
    with ready.writing() as session, pytest.raises(ConflictError, match="host elsewhere has no live worker"):
        ask_deploy(session, OPERATOR, WANTED, NONE, SEALER, on_host="elsewhere")
    changes = [
        update(EngineReplica).values(state="damaged"),
        update(Worker).values(seen_at=utc_now() - timedelta(minutes=5)),
        update(Worker).values(ended_at=utc_now()),
        update(Worker).values(home="/another"),
    ]
    for change in changes:
        with ready.writing() as session:
            changed = session.begin_nested()
            session.execute(change)
            with pytest.raises(ConflictError, match="no host with a live worker has engine tiny"):
                ask_deploy(session, OPERATOR, WANTED, NONE, SEALER)
            changed.rollback()


def test_stopping_cancels_the_start_and_asks_once(ready: Database) -> None:
    id_, job_id = deploy(ready)
    with ready.writing() as session:
        first = ask_undeploy(session, OPERATOR, id_, drain_s=60).id
    with ready.writing() as session:
        assert ask_undeploy(session, OPERATOR, id_).id == first
    with ready.reading() as session:
        assert session.get_one(Deployment, id_).state == "stopping"
        assert session.get_one(Job, job_id).state == "cancelled"
        assert session.get_one(Job, first).payload == {"deployment_id": id_, "drain_s": 60}
        assert [entry.action for entry in session.scalars(select(AuditEntry))] == ["deployment.start", "deployment.stop"]


def test_the_same_key_gives_the_same_end_after_it_has_come_and_forgetting_twice_is_no_error(ready: Database) -> None:
    id_, _ = deploy(ready)
    with ready.writing() as session:
        job = ask_undeploy(session, OPERATOR, id_, idempotency_key="k")
        session.get_one(Deployment, id_).state = "stopped"
        job.state = "succeeded"
        assert ask_undeploy(session, OPERATOR, id_, idempotency_key="k") is job
        for _ in range(2):
            forget(session, OPERATOR, id_)
            session.flush()
        assert ask_undeploy(session, OPERATOR, id_, idempotency_key="k") is job
        with pytest.raises(UsageError, match="'k' was used for another request"):
            ask_undeploy(session, OPERATOR, id_, drain_s=60, idempotency_key="k")
        with pytest.raises(NotFoundError):
            forget(session, OPERATOR, "none")
        actions = [entry.action for entry in session.scalars(select(AuditEntry).order_by(AuditEntry.id))]
    assert actions == ["deployment.start", "deployment.stop", "deployment.forget"]


def test_deploying_again_with_one_key_is_one_deployment_after_the_old_one_was_forgotten(ready: Database) -> None:
    id_, job_id = deploy(ready)
    fail(ready, id_, job_id)
    answers = []
    for old_is_there in (True, True, False):
        with ready.writing() as session:
            if not old_is_there:
                forget(session, OPERATOR, id_)
        with ready.writing() as session:
            row, job = deploy_again(session, OPERATOR, id_, SEALER, idempotency_key="k")
            answers.append((row.id, job.id))
    assert len(set(answers)) == 1
    with ready.writing() as session, pytest.raises(NotFoundError):
        deploy_again(session, OPERATOR, id_, SEALER, idempotency_key="another")


def fail(database: Database, id_: str, job_id: int) -> None:
    """As its worker does with a start that fails."""
    with database.writing() as session:
        tell(session.get_one(Deployment, id_), "failed", reason="no memory")
        session.get_one(Job, job_id).state = "failed"


def retry(database: Database, job_id: int) -> str:
    with database.writing() as session:
        return ask_retry(session, OPERATOR, job_id).state


def test_a_start_that_is_tried_again_takes_its_name_at_once(ready: Database) -> None:
    id_, job_id = deploy(ready)
    fail(ready, id_, job_id)
    with ready.writing() as session:
        session.execute(update(Deployment).values(seen_at=utc_now() - timedelta(days=1), endpoints={"openai": "http://old"}))
    assert retry(ready, job_id) == "queued"
    with ready.reading() as session:
        row = session.get_one(Deployment, id_)
        assert (row.state, row.reason, row.ended_at, row.seen_at, row.endpoints) == ("starting", None, None, None, None)
    with pytest.raises(ConflictError, match="m is served on here already"):
        deploy(ready)


def test_a_start_is_not_tried_again_beside_one_of_its_name(ready: Database) -> None:
    id_, job_id = deploy(ready)
    fail(ready, id_, job_id)
    other, _ = deploy(ready)
    with pytest.raises(ConflictError, match=f"m is served on here already, by deployment {other}") as refused:
        retry(ready, job_id)
    assert refused.value.hint == "Stop it, or take another name."
    with ready.reading() as session:
        assert (session.get_one(Job, job_id).state, session.get_one(Deployment, id_).state) == ("failed", "failed")


def test_a_deployment_that_was_unloaded_or_forgotten_is_not_started_by_its_old_job(ready: Database) -> None:
    id_, job_id = deploy(ready)
    with ready.writing() as session:
        stop = ask_undeploy(session, OPERATOR, id_).id
    with pytest.raises(ConflictError, match="is being unloaded"):
        retry(ready, job_id)
    with ready.writing() as session:
        tell(session.get_one(Deployment, id_), "stopped")
        session.get_one(Job, stop).state = "succeeded"
    with pytest.raises(ConflictError, match="was unloaded"):
        retry(ready, job_id)
    with ready.writing() as session:
        forget(session, OPERATOR, id_)
    with pytest.raises(ConflictError, match="was forgotten"):
        retry(ready, job_id)


def test_a_start_that_was_cancelled_can_be_tried_again(ready: Database) -> None:
    id_, job_id = deploy(ready)
    for told in (None, "failed"):
        with ready.writing() as session:
            ask_cancel(session, OPERATOR, job_id)
            if told is not None:
                tell(session.get_one(Deployment, id_), "failed", reason="it was never started")
        assert retry(ready, job_id) == "queued"
        with ready.reading() as session:
            assert session.get_one(Deployment, id_).state == "starting"


def test_one_that_nobody_can_stop_is_given_up(ready: Database) -> None:
    id_, start = deploy(ready)
    with ready.writing() as session:
        stop = ask_undeploy(session, OPERATOR, id_).id
        with pytest.raises(ConflictError, match="a worker of here is alive"):
            give_up(session, OPERATOR, id_)
        with pytest.raises(ForbiddenError):
            give_up(session, VIEWER, id_)
        session.execute(update(Worker).values(seen_at=utc_now() - timedelta(minutes=5)))
        for _ in range(2):
            give_up(session, OPERATOR, id_)
    with ready.reading() as session:
        row = session.get_one(Deployment, id_)
        assert (row.state, row.reason) == ("dead", "given up by olga: no worker of here was alive to stop it")
        assert [session.get_one(Job, job).state for job in (start, stop)] == ["cancelled", "cancelled"]
        actions = [entry.action for entry in session.scalars(select(AuditEntry).order_by(AuditEntry.id))]
    assert actions == ["deployment.start", "deployment.stop", "deployment.give-up"]


@pytest.mark.parametrize(
    ("known", "state"),
    [
        ({"seen_at": None}, "stopped"),
        ({"seen_at": utc_now()}, "starting"),
        ({"endpoints": {"openai": "http://here/v1"}}, "unready"),
    ],
)
def test_cancelling_the_end_sets_it_back(ready: Database, known: dict[str, object], state: str) -> None:
    id_, _ = deploy(ready)
    with ready.writing() as session:
        session.execute(update(Deployment).values(**known))
        stop = ask_undeploy(session, OPERATOR, id_).id
    with ready.writing() as session:
        ask_cancel(session, OPERATOR, stop)
    with ready.writing() as session:
        assert session.get_one(Deployment, id_).state == state


def test_what_cannot_be_stopped_or_forgotten_says_so(ready: Database) -> None:
    id_, _ = deploy(ready)
    with ready.writing() as session:
        with pytest.raises(ConflictError, match="is starting"):
            forget(session, OPERATOR, id_)
        with pytest.raises(UsageError, match="0 to 600"):
            ask_undeploy(session, OPERATOR, id_, drain_s=601)
        with pytest.raises(NotFoundError):
            ask_undeploy(session, OPERATOR, "none")
        for refused in (lambda: ask_undeploy(session, VIEWER, id_), lambda: forget(session, VIEWER, id_)):
            with pytest.raises(ForbiddenError):
                refused()
        session.execute(update(Deployment).values(state="dead"))
        session.execute(update(Job).values(state="failed"))
        session.expire_all()
        with pytest.raises(ConflictError, match="has ended: dead"):
            ask_undeploy(session, OPERATOR, id_)
        forget(session, OPERATOR, id_)
        assert session.scalar(select(Deployment)) is None
    deploy(ready)  # its name is free again
