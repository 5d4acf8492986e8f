"""The folder of a deployment, ``<home>/deployments/<id>``: what to run, what became of it, its log, and who is at it."""

from __future__ import annotations

import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from roundhouse.build.home import Home

from ..deployments.settings import DeploymentSettings
from . import lock

__all__ = ["DeploymentFolder", "Order", "SupervisorState", "SupervisorWord", "deployments_of"]

_DRAIN_S = 5.0
SupervisorWord = Literal["starting", "ready", "restarting", "stopping", "stopped", "failed"]


class Order(BaseModel):
    """What a supervisor is to run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    deployment_id: str
    home: Path
    settings: DeploymentSettings
    sealed: str | None
    """Its secrets, encrypted as in the database: with the key in the environment, nothing secret is ever on this disk."""


class SupervisorState(BaseModel):
    """What a supervisor last said of its deployment."""

    model_config = ConfigDict(frozen=True)

    pid: int
    started: int
    """When the process was started (:func:`~.identity.process_start`): with the pid, which process it is."""
    state: SupervisorWord
    since: datetime
    endpoints: dict[str, Any] | None = None
    restarts: int = 0
    reason: str | None = None
    hint: str | None = None


class DeploymentFolder:
    """One of them.

    Args:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def deployment_id(self) -> str:
        """Whose it is."""
        return self.path.name

    @property
    def lock(self) -> Path:
        """What the supervisor holds for its whole life."""
        return self.path / "lock"

    @property
    def is_watched(self) -> bool:
        """Whether a supervisor is alive."""
        return lock.is_held(self.lock)

    def prepare(self, order: Order, *, first_line: int) -> None:
        """Write down what to run, in a fresh folder that only its owner can read.

        Args:
            order: what.
            first_line: the number of the first line of its log.
        """
        self.remove()
        self.path.mkdir(parents=True, mode=0o700)
        _write(self.path / "settings.json", order.model_dump_json())
        _write(self.path / f"server-{first_line}.log", "")

    def order(self) -> Order:
        """What to run."""
        return Order.model_validate_json((self.path / "settings.json").read_text())

    def state(self) -> SupervisorState | None:
        """What the supervisor last said; None while it has said nothing."""
        try:
            return SupervisorState.model_validate_json((self.path / "state.json").read_text())
        except (FileNotFoundError, ValidationError):
            return None

    def tell(self, state: SupervisorState) -> None:
        """Say how it is. A reader sees the one before or this one, never half of it."""
        _write(self.path / "state.json", state.model_dump_json())

    @property
    def drain_s(self) -> float:
        """How long running requests may go on at the end."""
        try:
            return float((self.path / "drain_s").read_text())
        except (FileNotFoundError, ValueError):
            return _DRAIN_S

    def set_drain(self, seconds: float) -> None:
        """Say how long running requests may go on when it is stopped."""
        _write(self.path / "drain_s", f"{seconds:g}")

    def remove(self) -> None:
        """Remove the folder. May be called when there is none."""
        shutil.rmtree(self.path, ignore_errors=True)


def deployments_of(home: Home) -> list[DeploymentFolder]:
    """The folders of every deployment of a home."""
    place = home.path / "deployments"
    if not place.is_dir():
        return []
    return [DeploymentFolder(path) for path in sorted(place.iterdir()) if path.is_dir() and not path.name.startswith(".")]


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
