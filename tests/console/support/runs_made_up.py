"""Benchmark runs that came to just the speeds that a test wants, and evaluations that found just its differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from built import add_built
from sqlalchemy.orm import Session

from roundhouse.build.engine import Manifest
from roundhouse.build.hardware import Hardware
from roundhouse.console.benchmarks.content import BenchmarkContent
from roundhouse.console.benchmarks.recording import record_benchmark
from roundhouse.console.database.base import utc_now
from roundhouse.console.evaluations.recording import record_evaluation
from roundhouse.console.models import BenchmarkRun, IntegrityRecord
from roundhouse.serve.accuracy.records import Difference, Evaluation, EvaluationHeader, GateResult, TaskScore
from roundhouse.serve.benchmark.points import EngineCounts, Percentiles, Point, PrefillPoint
from roundhouse.serve.benchmark.records import BenchmarkHeader, Driver
from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.history import RecordState
from roundhouse.serve.measurement.about import Environment, Subject

__all__ = ["FAST", "FIRST", "H200", "NEVER", "SLOW", "RunMadeUp", "add_findings", "add_measured_engines", "add_run"]

FAST, SLOW, NEVER = "1" * 16, "2" * 16, "3" * 16
"""Engines of :func:`add_measured_engines`."""

FIRST = datetime(2026, 11, 1, tzinfo=UTC)
"""When the first of them began."""
USUAL = Workload()
H200 = Hardware(name="NVIDIA H200", kind="cuda", cores=0, total_memory=141 * 10**9, free_memory=140 * 10**9, bandwidth=4.8e12)
_PAGES = 512


_SETTINGS = {
    "kernels": "auto",
    "precision": "engine",
    "page_tokens": 16,
    "kv": {"pages": _PAGES, "tokens": 16 * _PAGES},
}


@dataclass(frozen=True)
class RunMadeUp:
    """What a run came to: output tokens a second by concurrency, one number a repeat; the rest follows."""

    id: str
    speeds: Mapping[int, Sequence[float]] = field(default_factory=lambda: {1: (30, 31, 32), 8: (150, 152, 154)})
    manifest: Manifest | None = None
    name: str = "tiny"
    model: str = "qwen3-8b"
    day: float = 0
    """After :data:`FIRST`."""
    state: RecordState = "finished"
    hardware: Hardware = H200
    workload: Workload = USUAL
    driver: Driver = "aiperf"
    turns: str | None = None
    """The session in which it took turns with others."""
    prefill: Mapping[int, Sequence[float]] = field(default_factory=dict)
    """Seconds to the first token by prompt length, one number a repeat; 0 where no prompt was answered."""
    failed: int = 0
    """Requests of each point, besides those that completed."""
    failed_prompts: int = 0
    """Of each prefill point, likewise."""
    other_cores: float | None = 0.0
    mismatches: int = 0
    versions: Mapping[str, str] = field(default_factory=lambda: {"roundhouse-llm": "0.3.0", "torch": "2.13.0"})
    is_baseline: bool = False
    settings: Mapping[str, Any] = field(default_factory=lambda: dict(_SETTINGS))

    @property
    def began_at(self) -> datetime:
        """When it began."""
        return FIRST + timedelta(days=self.day)

    @property
    def header(self) -> BenchmarkHeader:
        """``header.json``."""
        manifest = self.manifest
        subject = Subject(
            kind="endpoint" if manifest is None else "engine",
            name=self.name if manifest is None else manifest.name,
            model=self.model if manifest is None else manifest.recipe.model,
            engine_id=None if manifest is None else manifest.id,
            manifest=None if manifest is None else manifest.model_dump(mode="json"),
            settings={"guard": "tags" if self.manifest is None else self.manifest.recipe.guard, **self.settings},
        )
        return BenchmarkHeader(
            id=self.id,
            began_at=self.began_at,
            driver=self.driver,
            driver_version="0.13.0",
            subject=subject,
            workload=self.workload,
            concurrencies=tuple(self.speeds),
            repeats=max(map(len, self.speeds.values()), default=1),
            prefill_lengths=tuple(self.prefill),
            seed=0,
            command=f"roundhouse bench {subject.name}",
            environment=Environment(
                host="one", hardware=self.hardware, driver="570.1", versions=dict(self.versions), idle_cores=0.01
            ),
            session=self.turns,
        )

    @property
    def points(self) -> list[Point]:
        """Of every concurrency in every repeat."""
        return [
            self._point(concurrency, repeat, speed)
            for concurrency, speeds in self.speeds.items()
            for repeat, speed in enumerate(speeds)
        ]

    def _point(self, concurrency: int, repeat: int, speed: float) -> Point:
        step = concurrency / speed
        return Point(
            concurrency=concurrency,
            repeat=repeat,
            began_at=self.began_at,
            duration_s=1000 / speed,
            completed=8,
            failed={"timeout": self.failed} if self.failed else {},
            input_tokens=2000,
            output_tokens=1000,
            tokens_from="usage",
            ttft=_percentiles(4 * step),
            inter_token=_percentiles(step),
            end_to_end=_percentiles(64 * step),
            engine=EngineCounts(
                kv_pages=_PAGES,
                kv_pages_used_mean=10,
                kv_pages_used_most=20,
                running_most=concurrency,
                waiting_most=0,
                prompt_tokens=2000,
                cached_tokens=0,
                steps=100,
                preemptions=0,
                tag_checks=1000,
                tag_mismatches=self.mismatches,
                content_checks=0,
                content_mismatches=0,
            ),
            other_cores=self.other_cores,
        )


def add_run(session: Session, id_: str, **fields: Any) -> RunMadeUp:
    """Write one down; fields are those of :class:`RunMadeUp`."""
    run = RunMadeUp(id_, **fields)
    prefill = [
        PrefillPoint(
            input_tokens=length,
            repeat=repeat,
            began_at=run.began_at,
            requests=4 if seconds else 0,
            ttft=_percentiles(seconds) if seconds else None,
            failed={"timeout": run.failed_prompts} if run.failed_prompts else {},
            other_cores=0.0,
        )
        for length, times in run.prefill.items()
        for repeat, seconds in enumerate(times)
    ]
    content = BenchmarkContent(
        header=run.header,
        state=run.state,
        ended_at=run.began_at + timedelta(minutes=5),
        points=tuple(run.points),
        prefill=tuple(prefill),
    )
    record_benchmark(session, content, "one", "/srv/roundhouse")
    if run.is_baseline:
        session.get_one(BenchmarkRun, id_).is_baseline = True
    return run


def add_findings(session: Session, id_: str, of: RunMadeUp, differences: Mapping[str, float], *, gate: str = "passed") -> None:
    """An evaluation of what a run measured, which differs from its base by so many points of 100 in each task."""
    header = EvaluationHeader(
        id=id_,
        began_at=of.began_at,
        subject=of.header.subject,
        base=of.header.subject,
        tasks=tuple(differences),
        limit=None,
        seed=0,
        gate_points=0.8,
        command="roundhouse evaluate",
        environment=of.header.environment,
    )
    scores = [
        TaskScore(
            task=task,
            suite="roundhouse",
            metric="accuracy",
            higher_is_better=True,
            is_share=True,
            value=0.5 + points / 100,
            stderr=0.01,
            items=200,
            difference=Difference(base=0.5, value=points / 100, low=points / 100 - 0.01, high=points / 100 + 0.01),
            seconds=10,
        )
        for task, points in differences.items()
    ]
    result: Any = {"state": gate, "limit_points": 0.8, "reasons": () if gate == "passed" else ("it was not",)}
    unmeasured: Any = {"unmeasured": ()} if "unmeasured" in Evaluation.model_fields else {}
    found = Evaluation(
        header=header,
        state="finished",
        ended_at=of.began_at,
        problem=None,
        scores=tuple(scores),
        gate=GateResult(**result),
        **unmeasured,
    )
    record_evaluation(session, found, "one", "/srv/roundhouse", files=[])


def add_measured_engines(session: Session) -> None:
    """Two that were measured, of which one lost accuracy and the other's pages were not as they should be; and a third."""
    fast = add_built(session, FAST, "fast", weights="int4_awq")
    slow = add_built(session, SLOW, "slow", weights="bf16")
    add_built(session, NEVER, "never")
    run = add_run(session, "a" * 12, manifest=fast, speeds={8: (200.0, 210.0, 220.0)}, prefill={512: (0.1,)})
    add_findings(session, "e" * 12, run, {"arithmetic": -2.0, "needles": 1.0}, gate="failed")
    add_run(session, "b" * 12, manifest=slow, speeds={1: (10.0,), 8: (100.0,)}, mismatches=2)
    event = {"host": "one", "home": "/srv", "engine_id": SLOW, "kind": "tag", "request_id": "r", "answer": 0, "step": 1}
    rest: Any = {"column": 1, "page": 7, "expected_tag": 4, "found_tag": 5, "last_holders": [], "event": "e"}
    session.add(IntegrityRecord(at=utc_now(), deployment_id=None, **event, **rest))


def _percentiles(value: float) -> Percentiles:
    return Percentiles(mean=value, p50=value, p90=1.1 * value, p95=1.2 * value, p99=1.5 * value, count=8)
