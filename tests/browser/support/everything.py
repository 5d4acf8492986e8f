"""A console with rows of every kind in every state, served without a worker: for visiting all of its pages."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import httpx
from building import add_job
from built import ID, add_built
from deployed import add_deployment, add_engine, add_lines, add_samples
from measured import add_benchmarks, add_evaluations, benchmark_header
from playwright.sync_api import Browser, BrowserContext
from populated import HOME, HOST, PASSWORD, Populated, add_worker, populate
from runs_made_up import add_findings, add_run
from served_app import ServedApp
from sqlalchemy import delete, select, update

from roundhouse.build.home import Home
from roundhouse.console.access.accounts import add_account, hash_password
from roundhouse.console.access.logins import Logins
from roundhouse.console.access.tokens import add_token, revoke_token
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database, database_url
from roundhouse.console.database.schema import open_database
from roundhouse.console.models import (
    BenchmarkRun,
    BenchmarkTag,
    DeploymentState,
    EngineReplica,
    IntegrityRecord,
    JobState,
    RecordFile,
    Role,
    User,
    Worker,
)
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.web.app import create_app
from roundhouse.serve.history.reader import RecordState

__all__ = ["RUNS_BESIDE", "Everything", "empty_console", "everything"]

RUNS_BESIDE = 0xC00000000000
"""Ids of runs that are set beside each other begin here."""

UNREADABLE, NOWHERE = "feedfacefeedface", "cafecafecafecafe"
RECIPE = {"recipe": {"model": "demo:smollm2", "weights": "int4_awq", "kv_cache": "fp8"}}
REPORT = {"format": "roundhouse.drill/1", "seed": 77, "engine": None, "steps": 5, "grants": 5, "faults": 5,
          "preemptions": 5, "cached_tokens": 5}  # fmt: skip
COUNTS = ("injected", "effective", "detected", "wrong_rows_run", "leaked_tokens", "false_alarms", "delay_steps", "unexplained",
          "errors", "steps", "grants")  # fmt: skip


@dataclass(frozen=True)
class Everything:
    """Where it is served, and what has a page of its own."""

    url: str
    database: Database
    samples: dict[str, tuple[str, ...]]
    """By a path's parameter, or a part of a path with it: what it may be, one of each kind."""

    def cookie_of(self, role: Role) -> dict[str, str]:
        """Of a new login of the account that is named like its role."""
        with self.database.writing() as session:
            user = session.scalars(select(User).where(User.name == f"the-{role}")).one()
            login = Logins().begin(session, user, address="10.0.0.7", browser="a browser with a name that is long")
        return {"roundhouse_login": login}

    def client(self, role: Role) -> httpx.Client:
        """A program with such a login. It keeps no connection, which the server may just be closing."""
        limits = httpx.Limits(max_keepalive_connections=0)
        return httpx.Client(base_url=self.url, cookies=self.cookie_of(role), limits=limits, timeout=60)

    @contextmanager
    def browser(self, chromium: Browser, role: Role, **options: Any) -> Iterator[BrowserContext]:
        """A browser's window with such a login."""
        with chromium.new_context(**options) as context:
            for name, value in self.cookie_of(role).items():
                context.add_cookies([{"name": name, "value": value, "url": self.url}])
            yield context


@contextmanager
def everything(folder: Path) -> Iterator[Everything]:
    """Make it, in a folder of its own."""
    home = Home(folder / "home")
    with _served(folder, home) as (url, database):
        samples = _fill(database, populate(database, home), home)
        yield Everything(url, database, samples)


@contextmanager
def empty_console(folder: Path) -> Iterator[tuple[str, str]]:
    """A console nobody has used; yields its address and the secret that makes the first account."""
    with _served(folder, Home(folder / "home"), secret := []) as (url, _):
        yield url, secret[0]


@contextmanager
def _served(folder: Path, home: Home, secret: list[str] | None = None) -> Iterator[tuple[str, Database]]:
    folder.mkdir(parents=True, exist_ok=True)
    database = Database(database_url(f"sqlite:///{folder / 'console.sqlite3'}", home))
    open_database(database)
    app = create_app(ConsoleSettings(home=home), database)
    if secret is not None:
        secret.append(app.state.roundhouse.first_account.secret)
    served = ServedApp(app)
    yield served.url, database
    served.stop()
    database.close()


def _fill(database: Database, populated: Populated, home: Home) -> dict[str, tuple[str, ...]]:
    """Add what happens less often; returns what can be named."""
    known = {name: [str(value)] for name, value in populated.known.items()}
    known["job_id"] += [str(job) for job in _add_jobs(database)]
    known["drills/{job_id}"] = [*known.pop("drill_id"), *(str(job) for job in _add_drills(database))]
    known["engine_id"] += _add_engines(database)
    known["deployment_id"] += _add_deployments(database, home)
    known["worker_id"] += _add_workers(database)
    known["event_id"] += [str(event) for event in _add_events(database)]
    known["benchmark_id"] += _add_benchmarks(database)
    known["evaluation_id"] += _add_evaluations(database)
    _add_runs_beside(database)
    known["name"] += [_add_somebody(database)]
    known["{name}/tokens"] = ["victim"]
    known["account/tokens/{token_id}"] = [_add_visitors(database)]
    return {name: tuple(values) for name, values in known.items()}


def _add_runs_beside(database: Database) -> None:
    """Runs of engines, with baselines, of which one became worse; and one of an endpoint that was disturbed."""
    with database.writing() as session:
        for kind, (weights, guard, speed) in enumerate(
            (("bf16", "tags", 100.0), ("int4_awq", "tags", 150.0), ("bf16", "off", 101.0))
        ):
            manifest = add_built(session, f"{kind + 0xE0:016x}", f"beside-{kind}", weights=weights, guard=guard)
            for day, factor in enumerate((1.0, 1.01, 0.8 if kind == 1 else 1.0)):
                speeds = {n: [factor * speed * n**0.7 + repeat for repeat in range(5)] for n in (1, 8, 32)}
                run = add_run(session, f"{RUNS_BESIDE + 10 * kind + day:012x}", manifest=manifest, speeds=speeds, day=day,
                              prefill={512: (0.2, 0.21)}, is_baseline=not day)  # fmt: skip
            add_findings(session, f"{RUNS_BESIDE + kind:012x}", run, {"arithmetic": -0.4 * kind}, gate="passed")
        add_run(session, f"{RUNS_BESIDE + 90:012x}", speeds={8: (70.0, 71.0)}, other_cores=1.2, model="elsewhere")


def _add_jobs(database: Database) -> Iterator[int]:
    stages = ("import", "calibrate", "quantize")
    for state in get_args(JobState):
        usual: dict[str, Any] = {"payload": RECIPE, "target": "torch", "stages": stages, "lines": 3}
        if state in ("failed", "interrupted"):
            usual |= {"error": "its worker went away", "hint": "It can be tried again.", "attempt": 2}
        if state == "succeeded":
            usual |= {"engine_id": ID, "result": {"engine_id": ID, "new": False}}
        yield add_job(database, state, **({"payload": RECIPE} if state == "queued" else usual))
    yield add_job(database, "running", payload=RECIPE, stages=stages, lines=700, cancel_requested_at=utc_now())
    yield add_job(database, "queued", target="trtllm-pytorch", host="nowhere", payload=RECIPE)
    yield add_job(database, "succeeded", kind="verify", engine_id=ID, result={"checked": 12, "bytes": 2**30})
    yield add_job(database, "running", kind="deploy", deployment_id="aaaaaaaa", stages=("start",))


def _add_drills(database: Database) -> Iterator[int]:
    failure = {
        "fault": "freed_early",
        "guard": "tags",
        "guard_sample": None,
        "seed": 9,
        "steps": 1,
        "why": "1 of 4 not stopped",
    }
    for passed in (True, False):
        row = dict.fromkeys(COUNTS, 4) | {"fault": "freed_early", "guard": "tags", "guard_sample": None, "probability": 1.0,
                                          "passed": passed, "judged": True}  # fmt: skip
        result = REPORT | {"passed": passed, "kinds": [row], "failures": [] if passed else [failure]}
        state, error = ("succeeded", None) if passed else ("failed", "the drill failed: see its report")
        yield add_job(database, state, kind="drill", subject="no model", payload={"seed": 1}, result=result, error=error)
    yield add_job(database, "running", kind="drill", subject="no model", payload={"seed": 1}, stages=("drill",), lines=2)


def _add_engines(database: Database) -> list[str]:
    with database.writing() as session:
        add_built(session, "abababababababab", "qwen3-8b-fp8-with-a-name-that-is-long", weights="fp8", kv_cache="fp8")
        add_engine(session, UNREADABLE)
        session.execute(
            update(EngineReplica)
            .where(EngineReplica.engine_id == UNREADABLE)
            .values(state="damaged", problem="a file is short")
        )
        add_built(session, NOWHERE, "nowhere")
        session.execute(delete(EngineReplica).where(EngineReplica.engine_id == NOWHERE))
    return ["abababababababab", UNREADABLE, NOWHERE]


def _add_deployments(database: Database, home: Home) -> list[str]:
    made = []
    with database.writing() as session:
        for number, state in enumerate(get_args(DeploymentState)):
            identity = f"{number:08x}"
            ended = utc_now() if state in ("stopped", "failed", "dead") else None
            front = None if state in ("starting", "failed") else "http://127.0.0.1:9000/v1"
            why = {"reason": f"it is {state}", "hint": "Its log tells."} if state not in ("ready", "starting") else {}
            add_deployment(session, identity, engine_id=ID, name=f"is-{state}", state=state, ended_at=ended, openai=front,
                           chat=state != "ready", host=HOST, home=HOME, restarts=number, **why)  # fmt: skip
            add_lines(session, identity, "I0101 started", "W0101 slow", "E0101 it went wrong", "an end " + "without end " * 40)
            made.append(identity)
        add_samples(session, "00000001", tag_mismatches=0)
        remote = {"engine_id": ID, "name": "remote", "kind": "remote", "triton_url": "http://triton:8000",
                  "triton_grpc": "triton:8001", "triton_metrics": "http://triton:8002/metrics", "keyed": True}  # fmt: skip
        add_deployment(session, "dddddddd", engine_id=ID, name="remote", kind="remote", settings=remote, host=HOST, home=HOME,
                       openai="http://127.0.0.1:9001/v1", key="secret", key_home=home)  # fmt: skip
    return [*made, "dddddddd"]


def _add_workers(database: Database) -> list[str]:
    gone, ended = add_worker(database, "gone"), add_worker(database, "ended")
    with database.writing() as session:
        session.get_one(Worker, gone.id).seen_at = utc_now() - timedelta(hours=3)
        session.get_one(Worker, ended.id).ended_at = utc_now()
    return [gone.id, ended.id]


def _add_events(database: Database) -> list[int]:
    holders = [{"request_id": "other", "tag": 7, "step": 4, "how": "granted"}]
    usual: dict[str, Any] = {"at": utc_now(), "host": HOST, "home": HOME, "engine_id": ID, "request_id": "r", "answer": 0,
                             "step": 4, "column": 1, "page": 1, "expected_tag": 2, "found_tag": 7,
                             "last_holders": holders}  # fmt: skip
    kinds: tuple[dict[str, Any], ...] = (
        {"kind": "content"},
        {"kind": "count"},
        {"kind": "tag", "page": None, "found_tag": None},
    )
    with database.writing() as session:
        rows = [IntegrityRecord(event=f"r/{number}/0", **usual | changes) for number, changes in enumerate(kinds)]
        session.add_all(rows)
        session.flush()
        return [row.id for row in rows]


def _add_benchmarks(database: Database) -> list[str]:
    """Runs in every state: with all that can be measured, with GPUs, of an engine with a page, by import, noisy, pinned."""
    made = []
    subject = benchmark_header().subject.model_copy(update={"engine_id": ID})
    now = utc_now() - timedelta(seconds=30)
    with database.writing() as session:
        for number, state in enumerate(get_args(RecordState), start=1):
            part = {"finished": 1.0, "interrupted": 0.0}.get(state, 0.5)
            problem = "the endpoint went away" if state == "failed" else None
            made += add_benchmarks(session, first=number, state=state, part=part, samples=20, problem=problem, subject=subject,
                                   host=HOST, home=HOME, **({"began_at": now} if state == "running" else {}))  # fmt: skip
        made += add_benchmarks(session, first=9, imported_from="profile_export.json", driver="vllm", host="", home="")
        row = session.get_one(BenchmarkRun, made[1])
        row.is_baseline, row.note = True, "before the new driver, " * 20
        session.add_all(BenchmarkTag(benchmark_id=row.id, tag=tag) for tag in ("h200", "release"))
    return made


def _add_evaluations(database: Database) -> list[str]:
    """Evaluations in every state, and with each gate; questions of one."""
    made = []
    subject = benchmark_header().subject.model_copy(update={"engine_id": ID})
    with database.writing() as session:
        for number, state in enumerate(get_args(RecordState), start=1):
            made += add_evaluations(session, first=number, state=state, subject=subject, host=HOST, home=HOME)
        for number, gate in enumerate(("failed", "not measured"), start=7):
            made += add_evaluations(session, first=number, gate=gate, host=HOST, home=HOME)
        told = {"asked": "What is it?\n" * 9, "answered": "no spaces at all" * 20, "wanted": None}
        lines = [
            {"task": task, "number": number, "score": number % 2, "base_score": number % 3 > 0, **told}
            for task in ("arithmetic", "needle")
            for number in range(9)
        ]
        content = gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode())
        session.execute(update(RecordFile).where(RecordFile.record_id == made[-1]).values(content=content))
    return made


def _add_somebody(database: Database) -> str:
    """A disabled account with tokens that are worth nothing."""
    with database.writing() as session:
        user = add_account(session, "gone-for-good", hash_password(PASSWORD), "operator")
        user.disabled_at = utc_now()
        revoke_token(add_token(session, user.id, "revoked", ("read",), None)[0])
        add_token(session, user.id, "expired", ("read", "build"), None)[0].expires_at = utc_now() - timedelta(days=1)
        return user.name


def _add_visitors(database: Database) -> str:
    """An account for each role; returns the id of a token of the admin's own."""
    with database.writing() as session:
        users = [add_account(session, f"the-{role}", hash_password(PASSWORD), role) for role in get_args(Role)]
        (admin,) = (user for user in users if user.role == "admin")
        return str(add_token(session, admin.id, "its own", ("read",), None)[0].id)
