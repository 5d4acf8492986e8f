"""What one worker runs with."""

from __future__ import annotations

import socket
import sys
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from sqlalchemy import make_url

from roundhouse.build.home import Home

from ..database.database import Database
from ..jobs import LEASE

__all__ = ["WorkerSettings"]


class WorkerSettings(BaseModel):
    """Settings of one worker process; they stay as they are while it runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    home: Home
    """Where its engines are. The path is what the database knows the home by: give it whole and resolved."""
    database: SecretStr
    """The database's URL, with its password."""
    host: str = Field(default_factory=socket.gethostname)
    model_folders: tuple[Path, ...] = ()
    """Under which model folders and files may lie; empty: in the home's ``models``."""
    lease: timedelta = LEASE
    """How long a job stays its own without a word from it."""
    grace_s: float = Field(default=10.0, ge=0)
    """How long a child that was asked to end may take to clean up."""
    child: tuple[str, ...] = (sys.executable, "-P", "-m", "roundhouse.console.worker.child")
    """The command that runs one job."""

    @property
    def poll_s(self) -> float:
        """How long it waits before it asks again whether there is a job; 1 s with the usual lease."""
        return self.lease.total_seconds() / 30

    @property
    def renew_s(self) -> float:
        """How often it renews a lease, and sees whether the job is to be cancelled; 2 s with the usual lease."""
        return self.lease.total_seconds() / 15

    def open_database(self) -> Database:
        """A database object of its own; no connection is made."""
        return Database(make_url(self.database.get_secret_value()))
