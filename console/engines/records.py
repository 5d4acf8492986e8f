"""What pages and the API show of engines."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from roundhouse.build.recipe import KvCache, Target, Weights

from ..evaluations.records import EngineGate, GateState
from ..models import LIVE_JOB_STATES, DeploymentState, JobKind, JobState, ReplicaState

__all__ = [
    "EngineDeployment",
    "EngineDetail",
    "EngineFilter",
    "EngineJob",
    "EngineRow",
    "EngineSort",
    "EngineState",
    "EngineWhereabouts",
    "ReplicaRow",
    "SiblingRow",
]

EngineState = Literal["present", "damaged", "gone"]
"""``present``: a host has it whole; ``damaged``: no host has it whole; ``gone``: no host has it, only its history is here."""
EngineWhereabouts = Literal["here", "present", "damaged", "gone", "any"]
"""Which engines are listed; ``here``: those that are not gone."""
EngineSort = Literal[
    "name",
    "-name",
    "model",
    "-model",
    "size",
    "-size",
    "kv_tokens",
    "-kv_tokens",
    "agreement",
    "-agreement",
    "kl",
    "-kl",
    "made",
    "-made",
]
"""What a list is sorted by; with ``-`` the greatest come first."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EngineFilter(_Record):
    """Which engines are listed: those that are all of this."""

    text: str | None = None
    """Part of its name or model, in any case, or the beginning of its id."""
    target: Target | None = None
    weights: Weights | None = None
    kv_cache: KvCache | None = None
    host: str | None = None
    """Which has a copy of it, whole or damaged."""
    state: EngineWhereabouts = "here"

    @property
    def is_set(self) -> bool:
        """Whether anything is left out that would be listed otherwise."""
        return self != EngineFilter()


class ReplicaRow(_Record):
    """A copy of an engine in a home of a host."""

    id: int
    host: str
    home: str
    folder: str
    state: ReplicaState
    problem: str | None
    found_at: datetime
    verified_at: datetime | None
    """When all of its files were last hashed and found to be what the manifest says."""


class EngineDeployment(_Record):
    """A deployment of an engine."""

    id: str
    name: str
    state: DeploymentState
    host: str
    created_by: str
    created_at: datetime
    ended_at: datetime | None
    is_live: bool
    silent: bool
    """Whether its host has told nothing for a while: `state` is what was last known."""

    @property
    def shown_state(self) -> str:
        """The word that pages show."""
        return "silent" if self.silent else self.state


class EngineRow(_Record):
    """An engine in a list."""

    id: str
    name: str
    model: str
    target: str
    role: str
    weights: str
    group_size: int | None
    """Input channels that share an INT4 scale; None where weights are not INT4."""
    kv_cache: str
    total_bytes: int
    """Of all its files."""
    base_bytes: int
    """Of the input's tensors."""
    checkpoint_bytes: int
    """Of its own tensors."""
    kv_tokens: int
    """As planned on the machine that built it."""
    top1_agreement: float | None
    """With the base, from 0 to 1; None where the build could not measure it."""
    kl: float | None
    """Mean KL divergence from the base, in nats."""
    created_at: datetime
    state: EngineState
    hosts: tuple[str, ...]
    """That have it whole."""
    damaged_hosts: tuple[str, ...]
    """That have a damaged copy."""
    live_deployments: int
    gate: GateState
    """Whether its latest evaluation against a base has passed the gate."""

    @property
    def weights_text(self) -> str:
        """``int4_awq g64``, ``fp8``."""
        return f"{self.weights} g{self.group_size}" if self.group_size else self.weights


class SiblingRow(_Record):
    """Another engine of the same model."""

    id: str
    name: str
    target: str
    weights: str
    group_size: int | None
    kv_cache: str
    total_bytes: int
    top1_agreement: float | None
    kl: float | None
    created_at: datetime
    same_input: bool
    """Whether it was made from the very same files."""


class EngineJob(_Record):
    """A job about an engine."""

    id: int
    kind: JobKind
    state: JobState
    host: str | None
    home: str | None
    requested_by: str
    created_at: datetime
    ended_at: datetime | None
    error: str | None

    @property
    def is_live(self) -> bool:
        """Whether it waits or runs."""
        return self.state in LIVE_JOB_STATES


class EngineDetail(EngineRow):
    """An engine on its own page."""

    recorded_at: datetime
    """When the console first heard of it."""
    replicas: tuple[ReplicaRow, ...]
    deployments: tuple[EngineDeployment, ...]
    """The latest, live ones first."""
    siblings: tuple[SiblingRow, ...]
    """The latest."""
    jobs: tuple[EngineJob, ...]
    """The latest first."""
    built_by: EngineJob | None
    """The job that made it; None where it was built by hand."""
    benchmarks: int
    """Runs that measured it."""
    latest_benchmark_id: str | None
    """Its latest finished run that has a number; None where there is none, and so with what follows."""
    tokens_per_s_most: float | None
    """Output tokens a second of that run, where they were most."""
    concurrency_most: int | None
    """At which that was."""
    evaluations: int
    evaluated: EngineGate
    """What its gate rests on."""
    integrity_events: int
    """Rows that page checks have stopped while it ran."""
    manifest: dict[str, Any]
    """``engine.json``."""

    def live_job(self, kind: JobKind, replica: ReplicaRow) -> EngineJob | None:
        """A job of this kind that waits or runs for this copy."""
        here = (job for job in self.jobs if job.kind == kind and job.is_live)
        return next((job for job in here if (job.host, job.home) == (replica.host, replica.home)), None)
