"""Workers, models and jobs as builds need them, made up."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from roundhouse.build.hardware import Hardware
from roundhouse.build.models.shipped import shipped_config
from roundhouse.build.planner.gpus import hardware_called
from roundhouse.console.access.actor import Actor
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import EngineRecord, Job, LogLine, Stage, Worker

BUILDER = Actor(user_id=1, name="ann", role="operator", by="browser", address="10.0.0.9")
READER = Actor(user_id=2, name="vic", role="viewer", by="browser", address="10.0.0.9")
MACHINE = Hardware(name="A CPU", kind="cpu", cores=8, total_memory=16 * 2**30, free_memory=12 * 2**30, native_bf16=True)


def make_model(folder: Path) -> str:
    """A model folder with a config and no weights, which is enough for a plan."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(shipped_config("smollm2-135m")))
    return str(folder)


def add_worker(
    database: Database, host: str = "forge", targets: tuple[str, ...] = ("torch",), gpu: str | None = None, **hardware: Any
) -> str:
    now = utc_now()
    worker = Worker(
        id=f"worker-of-{host}",
        host=host,
        pid=1,
        home="/srv/roundhouse",
        hardware=MACHINE.model_copy(update=hardware).model_dump(mode="json"),
        gpu=None if gpu is None else hardware_called(gpu).model_dump(mode="json"),
        versions={},
        targets=list(targets),
        disk_free=1,
        disk_total=1,
        started_at=now,
        seen_at=now,
        ended_at=None,
    )
    with database.writing() as session:
        session.add(worker)
    return worker.id


def add_job(database: Database, state: str, *, lines: int = 0, stages: tuple[str, ...] = (), **values: Any) -> int:
    """A job in some state, with as many lines and stages of its latest attempt."""
    now = utc_now()
    began = state != "queued"
    usual: dict[str, Any] = {
        "kind": "build",
        "subject": "tiny-int4_awq-kv-fp8",
        "payload": {"recipe": {"model": "shape:smollm2-135m"}},
        "requested_by": "ann",
        "created_at": now - timedelta(minutes=5),
        "attempt": 1 if began else 0,
        "most_attempts": 2,
        "started_at": now - timedelta(minutes=4) if began else None,
        "ended_at": None if state in ("queued", "running") else now,
        "lease_until": now + timedelta(days=1) if state == "running" else None,
    }
    job = Job(state=state, **(usual | values))
    with database.writing() as session:
        session.add(job)
        session.flush()
        for position, name in enumerate(stages):
            at = now - timedelta(minutes=4) + timedelta(seconds=30 * position)
            last = position == len(stages) - 1 and state == "running"
            session.add(
                Stage(
                    job_id=job.id,
                    attempt=job.attempt,
                    name=name,
                    position=position,
                    began_at=at,
                    ended_at=None if last else at + timedelta(seconds=30),
                    what=f"the work of {name}",
                    done=0.5 if last else 1.0,
                )
            )
        for number in range(1, lines + 1):
            session.add(LogLine(job_id=job.id, attempt=max(1, job.attempt), number=number, at=now, text=f"line {number}"))
        return job.id


def add_engine(database: Database, engine_id: str = "0123456789abcdef") -> str:
    now = utc_now()
    record = EngineRecord(
        id=engine_id,
        name="tiny",
        model="shape:smollm2-135m",
        target="torch",
        role="aggregated",
        weights="int4_awq",
        group_size=64,
        kv_cache="fp8",
        total_bytes=120_000_000,
        base_bytes=269_030_016,
        checkpoint_bytes=116_634_256,
        kv_tokens=65_536,
        top1_agreement=0.874,
        kl=0.071,
        manifest={},
        created_at=now,
        recorded_at=now,
    )
    with database.writing() as session:
        session.add(record)
    return engine_id
