"""Where Roundhouse keeps things: ``$ROUNDHOUSE_HOME``, or the platform's user data folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Home", "default_home", "home_of"]


@dataclass(frozen=True)
class Home:
    """The home folder. Subfolders are made by whoever writes into them."""

    path: Path

    @property
    def engines(self) -> Path:
        """Finished engines, and builds in progress under ``.building/``."""
        return self.path / "engines"

    @property
    def database(self) -> Path:
        """The console's own, where none is named."""
        return self.path / "roundhouse.sqlite3"

    @property
    def integrity_events(self) -> Path:
        """Every row that an engine's page check stopped, one JSON object a line."""
        return self.path / "logs" / "integrity-events.jsonl"

    @property
    def cache(self) -> Path:
        """What can be made again: imported models, laid-out Triton backends."""
        return self.path / "cache"

    @property
    def kernels(self) -> Path:
        """Native kernels, compiled for this machine's CPU."""
        return self.cache / "native"


def default_home() -> Home:
    """``$ROUNDHOUSE_HOME`` when set and not empty, else the platform's user data folder."""
    given = os.environ.get("ROUNDHOUSE_HOME")
    if given:
        return Home(Path(given).expanduser())
    import platformdirs  # TensorRT-LLM's Python may lack it, and its ranks are told their home

    return Home(platformdirs.user_data_path("roundhouse"))


def home_of(engine: Path) -> Home:
    """The home that an engine's folder lies in; the default one for a folder elsewhere."""
    home = Home(engine.resolve().parent.parent)
    return home if engine.resolve().parent == home.engines else default_home()
