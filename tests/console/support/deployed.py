"""Rows of engines and deployments, as hosts would have told of them."""

from __future__ import annotations

import socket
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from roundhouse.build.home import Home
from roundhouse.console.access.sealing import Sealer
from roundhouse.console.database.base import utc_now
from roundhouse.console.models import Deployment, DeploymentLogLine, DeploymentSample, EngineRecord, EngineReplica, Worker

HOST = socket.gethostname()
HOME = "/srv/roundhouse"
MACHINE = {"name": "a CPU", "kind": "cpu", "cores": 2, "total_memory": 2**34, "free_memory": 2**33}


def add_engine(session: Session, identity: str = "0123456789abcdef", *, host: str = HOST, **changes: Any) -> EngineRecord:
    """An engine that lies on a host where a worker lives."""
    now = utc_now()
    fields: dict[str, Any] = {
        "id": identity, "name": f"engine-{identity[:4]}", "model": "tiny", "target": "torch", "role": "aggregated",
        "weights": "bf16", "group_size": None, "kv_cache": "bf16", "total_bytes": 2**20, "base_bytes": 2**20,
        "checkpoint_bytes": 2**20, "kv_tokens": 2048, "top1_agreement": 1.0, "kl": 0.0, "manifest": {"recipe": {}},
        "created_at": now, "recorded_at": now,
    }  # fmt: skip
    engine = EngineRecord(**(fields | changes))
    session.add(engine)
    session.flush()
    add_replica(session, identity, host)
    return engine


def add_replica(session: Session, engine_id: str, host: str) -> None:
    now = utc_now()
    place = {"host": host, "home": HOME}
    session.add(EngineReplica(engine_id=engine_id, folder=f"{HOME}/engines/x", state="present", found_at=now, **place))
    if session.get(Worker, host) is None:
        session.add(
            Worker(id=host, host=host, home=HOME, pid=1, versions={}, targets=["torch"], hardware=MACHINE, disk_free=2**40,
                   disk_total=2**41, started_at=now, seen_at=now)
        )  # fmt: skip
    session.flush()


def add_deployment(
    session: Session,
    identity: str = "aaaaaaaa",
    *,
    openai: str | None = None,
    chat: bool = True,
    key: str | None = None,
    key_home: Home | None = None,
    **changes: Any,
) -> Deployment:
    """A deployment; ready unless said otherwise."""
    now = utc_now()
    engine_id = changes.get("engine_id", "0123456789abcdef")
    if session.get(EngineRecord, engine_id) is None:
        add_engine(session, engine_id)
    name = changes.get("name", "tiny")
    endpoints = None
    if openai is not None:
        endpoints = {
            "model": name, "models": [name], "http": "http://127.0.0.1:8000", "grpc": "127.0.0.1:8001",
            "metrics": "http://127.0.0.1:8002/metrics", "openai": openai, "chat": chat,
        }  # fmt: skip
    fields: dict[str, Any] = {
        "id": identity, "name": name, "engine_id": engine_id, "kind": "local", "host": HOST, "home": HOME,
        "settings": {"engine_id": engine_id, "name": name, "keyed": key is not None},
        "sealed": Sealer.of(key_home).seal({"api_key": key}) if key and key_home else None,
        "state": "ready", "endpoints": endpoints, "created_by": "ann", "created_at": now, "changed_at": now,
        "ready_at": now, "seen_at": now,
    }  # fmt: skip
    row = Deployment(**(fields | changes))
    session.add(row)
    session.flush()
    return row


def add_samples(
    session: Session, identity: str = "aaaaaaaa", *, last: datetime | None = None, count: int = 6, **changes: Any
) -> None:
    """A sample every two seconds: 40 tokens and 20 checks a second, the newest now."""
    last = last or utc_now()
    for index in range(count):
        values: dict[str, Any] = {
            "running": 2, "waiting": 1, "pages_free": 90, "pages_used": 30, "pages_cached": 7, "pages_quarantined": 1,
            "prompt_tokens": 100 * index, "generated_tokens": 80 * index, "cached_tokens": 0, "steps": 40 * index,
            "preemptions": 0, "tag_checks": 40 * index, "tag_mismatches": 1, "content_checks": 0, "content_mismatches": 0,
            "ttft_sum": 0.5 * index, "ttft_count": 2 * index, "guard_alive": True, "tokens_come_out": True,
        }  # fmt: skip
        at = last - timedelta(seconds=2 * (count - 1 - index))
        session.add(DeploymentSample(deployment_id=identity, at=at, values=values | changes))
    session.flush()


def add_lines(session: Session, identity: str, *texts: str, first: int = 1) -> None:
    for number, text in enumerate(texts, first):
        session.add(DeploymentLogLine(deployment_id=identity, number=number, at=utc_now(), text=text))
    session.flush()
