"""What requests have in common: the key of who asks for work, and the ids in addresses."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Path

__all__ = [
    "BenchmarkId",
    "DeploymentId",
    "EngineId",
    "EvaluationId",
    "FileName",
    "IdempotencyKey",
    "JobId",
    "UserName",
    "WorkerId",
]

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Drawn by who asks. Asking again with the same key does nothing twice: it gets what is there.",
    ),
]
JobId = Annotated[int, Path(ge=1, le=2**31 - 1, description="A job's number.")]
BenchmarkId = Annotated[str, Path(pattern=r"^[0-9A-Za-z_-]{1,64}$", description="A benchmark run's id, the whole of it.")]
EvaluationId = Annotated[str, Path(pattern=r"^[0-9A-Za-z_-]{1,64}$", description="An evaluation's id, the whole of it.")]
FileName = Annotated[str, Path(min_length=1, max_length=400, description="A raw file's name, with its folders.")]
EngineId = Annotated[str, Path(pattern=r"^[0-9A-Za-z_-]{1,64}$", description="An engine's id, the whole of it.")]
DeploymentId = Annotated[str, Path(pattern=r"^[0-9A-Za-z_-]{1,64}$", description="A deployment's id.")]
WorkerId = Annotated[str, Path(pattern=r"^[0-9A-Za-z._-]{1,100}$", description="A worker's id.")]
UserName = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$", description="An account's name.")]
