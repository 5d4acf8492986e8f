"""What a rank is told through its environment: ``env_overrides`` of the LLM arguments."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from roundhouse.errors import SetupError

__all__ = ["PREFIX", "GuardSettings", "settings_from"]

PREFIX = "ROUNDHOUSE_GUARD_"
_OF_BUILDS = PREFIX + "PLUGIN"
"""Names the TensorRT plugin to builds for the target `tensorrt`; a machine may have both."""
_LAST_PORT = 65535


class GuardSettings(BaseModel):
    """Each field is a variable: ``metrics`` is ``ROUNDHOUSE_GUARD_METRICS``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: str = ""
    """The engine's id, for metrics and integrity events."""
    metrics: str = "127.0.0.1:8003"
    """Where rank 0 answers ``/ready`` and ``/metrics``, as ``host:port``."""
    home: Path | None = None
    """Whose file of integrity events is written; none without it."""
    library: Path | None = None
    """The CUDA guard, as CMake builds it; without it plain torch operations compare."""
    wait_s: float = Field(default=600.0, gt=0)
    """How long rank 0 waits for the others at the start: they load weights, each at its own pace."""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of ``metrics``."""
        host, _, port = self.metrics.rpartition(":")
        return host.strip("[]"), int(port)


def settings_from(environment: Mapping[str, str] = os.environ) -> GuardSettings:
    """Read them.

    Raises:
        SetupError: a variable that is not known, or a value that is none; naming it.
    """
    ours = {name: value for name, value in environment.items() if name.startswith(PREFIX) and name != _OF_BUILDS}
    given = {name.removeprefix(PREFIX).lower(): value for name, value in ours.items()}
    for name in given:
        if name not in GuardSettings.model_fields:
            near = difflib.get_close_matches(name, GuardSettings.model_fields, n=1, cutoff=0.0)[0]
            raise SetupError(f"{PREFIX}{name.upper()} is not known; the nearest is {PREFIX}{near.upper()}")
    try:
        settings = GuardSettings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise SetupError(f"{PREFIX}{str(first['loc'][0]).upper()}: {first['msg']}") from None
    host, _, port = settings.metrics.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise SetupError(f"{PREFIX}METRICS={settings.metrics} is no address", hint="Write it like 0.0.0.0:8003.")
    return settings
