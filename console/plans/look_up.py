"""Models as plans need them, remembered while their files stay as they are. Nothing is downloaded: no request waits for it."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from roundhouse.build.models.parameters import Inventory
from roundhouse.build.models.shape import ModelShape
from roundhouse.build.models.sources import is_hub_id, look_up
from roundhouse.errors import ModelError

__all__ = ["look_up_here"]

_REMEMBERED = 64
_MOST_FILES = 2_000

Signature = tuple[tuple[str, int, int], ...]


def look_up_here(source: str) -> tuple[ModelShape, Inventory]:
    """What a plan needs of a model, from what is on this machine.

    Args:
        source: a folder, a ``.gguf`` file, ``demo:smollm2``, a shipped shape, or a hub id whose config is in this
            machine's Hugging Face cache.

    Raises:
        ModelError: nothing is there, it cannot be read, or it would have to be downloaded.
        SetupError: the demo model is not installed.
    """
    try:
        path = Path(source).expanduser()
        if is_hub_id(source) and not path.exists():
            path = _hub_folder(source)
            return _look_up(str(path), _signature(path))
        return _look_up(source, _signature(path))
    except (OSError, ValueError, RuntimeError) as error:  # a name too long, a NUL in it, nobody's home, no right to read
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ModelError(f"{source[:200]!r} cannot be read: {reason}") from None


@lru_cache(maxsize=_REMEMBERED)
def _look_up(source: str, _: Signature) -> tuple[ModelShape, Inventory]:
    return look_up(source)


def _signature(path: Path) -> Signature:
    """Changes when a file is written, comes or goes; empty where there is no such path."""
    if path.is_dir():
        with os.scandir(path) as entries:
            files = [(entry.name, entry.stat()) for entry, _ in zip(entries, range(_MOST_FILES), strict=False)]
        return tuple(sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in files))
    if path.is_file():
        stat = path.stat()
        return ((path.name, stat.st_size, stat.st_mtime_ns),)
    return ()


def _hub_folder(hub_id: str) -> Path:
    """Where a hub model's files lie in this machine's cache. Only looked for: asking the hub could take minutes."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface").expanduser()
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()
    folder = cache / f"models--{hub_id.replace('/', '--')}"
    revision = folder / "refs" / "main"
    if revision.is_file():
        snapshot = folder / "snapshots" / revision.read_text().strip()
        if (snapshot / "config.json").is_file():
            return snapshot
    raise ModelError(
        f"{hub_id} is not on this machine, and the console downloads nothing while you type",
        hint=f"`roundhouse plan {hub_id}` on this machine brings its configs, some kilobytes; then it is planned here too.",
    )
