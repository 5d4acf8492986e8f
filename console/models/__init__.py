"""Every table of the console's database, one module each. Alembic compares them with what the migrations make."""

from __future__ import annotations

from .account import ApiToken, AuditEntry, LoginSession, Role, User
from .job import Job, JobKind, JobState, LogLine, Stage
from .worker import Worker

__all__ = [
    "ApiToken",
    "AuditEntry",
    "Job",
    "JobKind",
    "JobState",
    "LogLine",
    "LoginSession",
    "Role",
    "Stage",
    "User",
    "Worker",
]
