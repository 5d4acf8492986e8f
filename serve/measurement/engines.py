"""Engines of ours as something that is measured: how they are named, which of them can run, what is written down of them."""

from __future__ import annotations

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.build.store import EngineStore

from ..settings import EngineSettings
from .about import Subject

__all__ = ["lasting_name", "subject_of"]


def lasting_name(home: Home, engine: Engine) -> str:
    """What an engine is still called tomorrow: its id in this home, or the whole path of its folder elsewhere.

    Its name may be another engine's then, and a path another folder's.
    """
    folder = engine.folder.resolve()
    return engine.manifest.id if folder == EngineStore(home).path(engine.manifest.id).resolve() else str(folder)


def subject_of(engine: Engine, settings: EngineSettings | None, *, url: str | None = None) -> Subject:
    """What is written down of an engine of ours.

    Args:
        engine: what is measured.
        settings: what it runs with; None when nobody knows.
        url: where it is asked; None where no server stands between.
    """
    manifest = engine.manifest
    return Subject(
        kind="engine",
        name=manifest.name,
        model=manifest.recipe.model,
        url=url,
        engine_id=manifest.id,
        manifest=manifest.model_dump(mode="json"),
        settings=None if settings is None else settings.model_dump(mode="json"),
    )
