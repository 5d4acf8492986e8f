"""Every table of the console's database, one module each. Alembic compares them with what the migrations make."""

from __future__ import annotations

from .account import ApiToken, AuditEntry, LoginSession, Role, User
from .benchmark import (
    BenchmarkLevel,
    BenchmarkPoint,
    BenchmarkPrefill,
    BenchmarkRun,
    BenchmarkSample,
    BenchmarkTag,
    EvaluationRun,
    EvaluationScore,
    RecordFile,
)
from .deployment import LIVE_STATES, Deployment, DeploymentKind, DeploymentLogLine, DeploymentSample, DeploymentState
from .engine import EngineRecord, EngineReplica, ReplicaState
from .integrity import IntegrityRecord
from .job import LIVE_JOB_STATES, Job, JobKind, JobState, LogLine, Stage
from .preference import Preference
from .setting import Setting
from .worker import Worker

__all__ = [
    "LIVE_JOB_STATES",
    "LIVE_STATES",
    "ApiToken",
    "AuditEntry",
    "BenchmarkLevel",
    "BenchmarkPoint",
    "BenchmarkPrefill",
    "BenchmarkRun",
    "BenchmarkSample",
    "BenchmarkTag",
    "Deployment",
    "DeploymentKind",
    "DeploymentLogLine",
    "DeploymentSample",
    "DeploymentState",
    "EngineRecord",
    "EngineReplica",
    "EvaluationRun",
    "EvaluationScore",
    "IntegrityRecord",
    "Job",
    "JobKind",
    "JobState",
    "LogLine",
    "LoginSession",
    "Preference",
    "RecordFile",
    "ReplicaState",
    "Role",
    "Setting",
    "Stage",
    "User",
    "Worker",
]
