"""What a console answers, as text that can be pasted into a ticket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from roundhouse.build.terminal import byte_text

from ..deployments.records import DeploymentDetail, DeploymentRow
from ..drills.records import DrillReportRow
from ..engines.records import EngineDetail, EngineRow
from ..integrity.records import EventRow
from ..jobs.records import JobAnswer, JobRow
from ..workers.records import WorkerRow

__all__ = [
    "deployment_view",
    "deployments_table",
    "drill_view",
    "engines_table",
    "events_table",
    "job_view",
    "jobs_table",
    "replicas_table",
    "workers_table",
]

_ENDPOINTS = ("openai", "http", "grpc", "metrics")
_NUMBERS = ("job", "size", "agreement", "put in", "stopped", "pid", "free")


def jobs_table(jobs: Iterable[JobRow]) -> Table:
    """One row per job."""
    rows = [
        (str(job.id), job.kind, job.subject, job.state, _doing(job), job.requested_by, _time(job.created_at)) for job in jobs
    ]
    return _table(("job", "kind", "of", "state", "doing", "asked by", "at"), rows)


def job_view(answer: JobAnswer) -> RenderableType:
    """One job with its stages."""
    job = answer.job
    facts = [
        ("job", f"{job.id}: {job.kind} {job.subject}"),
        ("state", job.state if answer.waiting is None else f"{job.state}: {answer.waiting}"),
        ("asked for", f"{_time(job.created_at)} by {job.requested_by}"),
        ("attempt", f"{job.attempt} of {job.most_attempts}" + (f", on {job.worker_host}" if job.worker_host else "")),
        ("engine", job.engine_id),
        ("deployment", job.deployment_id),
        ("ended", _time(job.ended_at) if job.ended_at else None),
        ("error", job.error),
        ("hint", job.hint),
    ]
    stages = [(stage.name, stage.what, _took(stage.began_at, stage.ended_at)) for stage in job.stages]
    return Group(_facts(facts), *([_table(("stage", "what", "took"), stages)] if stages else []))


def engines_table(engines: Iterable[EngineRow]) -> Table:
    """One row per engine."""
    rows = [
        (
            each.id,
            each.name,
            each.weights_text,
            each.kv_cache,
            byte_text(each.total_bytes),
            f"{each.top1_agreement:.1%}",
            each.state,
            ", ".join((*each.hosts, *each.damaged_hosts)),
        )
        for each in engines
    ]
    return _table(("id", "name", "weights", "KV", "size", "agreement", "state", "hosts"), rows)


def replicas_table(engine: EngineDetail) -> Table:
    """Where an engine lies, and who serves it."""
    copies = [(f"{each.host}:{each.folder}", each.state, each.problem or "") for each in engine.replicas]
    served = [(f"deployment {each.id} on {each.host}", each.state, each.name) for each in engine.deployments if each.is_live]
    return _table(("where", "state", ""), [*copies, *served])


def deployments_table(deployments: Iterable[DeploymentRow]) -> Table:
    """One row per deployment."""
    rows = [(each.id, each.name, each.engine_name, each.host, each.state, each.openai or "") for each in deployments]
    return _table(("id", "name", "engine", "host", "state", "OpenAI"), rows)


def deployment_view(found: DeploymentDetail) -> Table:
    """One deployment."""
    now = found.sample.values if found.sample else None
    rates = f"{found.rates.generated_tokens:.1f} tokens/s" if found.rates else None
    return _facts(
        [
            ("deployment", f"{found.id}  {found.name}"),
            ("engine", f"{found.engine_id}  {found.engine_name}"),
            ("state", found.state if found.reason is None else f"{found.state}: {found.reason}"),
            ("hint", found.hint),
            ("host", found.host),
            *((name, str(where)) for name, where in (found.endpoints or {}).items() if name in _ENDPOINTS),
            ("requests", f"{now.running} running, {now.waiting} waiting" if now else None),
            ("speed", rates),
            ("tag checks", f"{now.tag_checks:,}, {now.tag_mismatches:,} mismatches" if now else None),
        ]
    )


def events_table(events: Iterable[EventRow]) -> Table:
    """One row per integrity event."""
    return _table(
        ("at", "deployment", "what"), [(_time(each.at), each.deployment_name or "", each.sentence) for each in events]
    )


def drill_view(report: DrillReportRow) -> Table:
    """One row per kind of fault and level."""
    rows = [
        (each.fault or "none", each.level, f"{each.injected:,}", f"{each.detected:,}", each.verdict) for each in report.kinds
    ]
    return _table(("fault", "checked", "put in", "stopped", ""), rows)


def workers_table(workers: Iterable[WorkerRow]) -> Table:
    """One row per worker."""
    rows = [
        (
            each.host,
            str(each.pid),
            each.state,
            ", ".join(each.targets),
            byte_text(each.disk_free),
            ", ".join(f"{job.kind} {job.subject} ({job.id})" for job in each.jobs),
            _time(each.seen_at),
        )
        for each in workers
    ]
    return _table(("host", "pid", "state", "targets", "free", "doing", "seen"), rows)


def _doing(job: JobRow) -> str:
    if job.error is not None:
        return job.error.splitlines()[0] if job.error else ""
    return f"{job.stage.name}: {job.stage.what}" if job.stage is not None and job.is_live else ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=SIMPLE)
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in _NUMBERS else "left",
            no_wrap=column in ("id", "job"),
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _facts(rows: Iterable[tuple[str, str | None]]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        if value is not None:
            table.add_row(name, Text(value))
    return table


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _took(began: datetime, ended: datetime | None) -> str:
    return f"{(ended - began).total_seconds():.1f} s" if ended is not None else "under way"
