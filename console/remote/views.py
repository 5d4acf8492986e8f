"""What a console answers, as text that can be pasted into a ticket."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table

from roundhouse.build.terminal import byte_text

from ..deployments.records import DeploymentDetail, DeploymentRow
from ..drills.records import DrillReportRow
from ..engines.records import EngineDetail, EngineRow
from ..integrity.records import EventRow
from ..jobs.records import JobAnswer, JobRow
from ..workers.records import WorkerRow
from .tables import facts_of, table_of, time_text

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


def jobs_table(jobs: Iterable[JobRow]) -> Table:
    """One row per job."""
    rows = [
        (str(job.id), job.kind, job.subject, job.state, _doing(job), job.requested_by, time_text(job.created_at))
        for job in jobs
    ]
    return table_of(("job", "kind", "of", "state", "doing", "asked by", "at"), rows)


def job_view(answer: JobAnswer) -> RenderableType:
    """One job with its stages."""
    job = answer.job
    facts = [
        ("job", f"{job.id}: {job.kind} {job.subject}"),
        ("state", job.state if answer.waiting is None else f"{job.state}: {answer.waiting}"),
        ("asked for", f"{time_text(job.created_at)} by {job.requested_by}"),
        ("attempt", f"{job.attempt} of {job.most_attempts}" + (f", on {job.worker_host}" if job.worker_host else "")),
        ("engine", job.engine_id),
        ("deployment", job.deployment_id),
        ("ended", time_text(job.ended_at) if job.ended_at else None),
        ("error", job.error),
        ("hint", job.hint),
    ]
    stages = [(stage.name, stage.what, _took(stage.began_at, stage.ended_at)) for stage in job.stages]
    return Group(facts_of(facts), *([table_of(("stage", "what", "took"), stages)] if stages else []))


def engines_table(engines: Iterable[EngineRow]) -> Table:
    """One row per engine."""
    rows = [
        (
            each.id,
            each.name,
            each.target,
            each.weights_text,
            each.kv_cache,
            byte_text(each.total_bytes),
            "not measured" if each.top1_agreement is None else f"{each.top1_agreement:.1%}",
            each.state,
            ", ".join((*each.hosts, *each.damaged_hosts)),
        )
        for each in engines
    ]
    return table_of(("id", "name", "target", "weights", "KV", "size", "agreement", "state", "hosts"), rows)


def replicas_table(engine: EngineDetail) -> Table:
    """Where an engine lies, and who serves it."""
    copies = [(f"{each.host}:{each.folder}", each.state, each.problem or "") for each in engine.replicas]
    served = [(f"deployment {each.id} on {each.host}", each.state, each.name) for each in engine.deployments if each.is_live]
    return table_of(("where", "state", ""), [*copies, *served])


def deployments_table(deployments: Iterable[DeploymentRow]) -> Table:
    """One row per deployment."""
    rows = [(each.id, each.name, each.engine_name, each.host, each.state, each.openai or "") for each in deployments]
    return table_of(("id", "name", "engine", "host", "state", "OpenAI"), rows)


def deployment_view(found: DeploymentDetail) -> Table:
    """One deployment."""
    now = found.sample.values if found.sample else None
    rates = f"{found.rates.generated_tokens:.1f} tokens/s" if found.rates else None
    return facts_of(
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
    return table_of(
        ("at", "deployment", "what"), [(time_text(each.at), each.deployment_name or "", each.sentence) for each in events]
    )


def drill_view(report: DrillReportRow) -> Table:
    """One row per kind of fault and level."""
    rows = [
        (each.fault or "none", each.level, f"{each.injected:,}", f"{each.detected:,}", each.verdict) for each in report.kinds
    ]
    return table_of(("fault", "checked", "put in", "stopped", ""), rows)


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
            time_text(each.seen_at),
        )
        for each in workers
    ]
    return table_of(("host", "pid", "state", "targets", "free", "doing", "seen"), rows)


def _doing(job: JobRow) -> str:
    if job.error is not None:
        return job.error.splitlines()[0] if job.error else ""
    return f"{job.stage.name}: {job.stage.what}" if job.stage is not None and job.is_live else ""


def _took(began: datetime, ended: datetime | None) -> str:
    return f"{(ended - began).total_seconds():.1f} s" if ended is not None else "under way"
