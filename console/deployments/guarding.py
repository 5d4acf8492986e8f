"""Which page guard a deployment runs with: what was changed for it, and else what its engine's recipe says."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.build.recipe import GUARD_SAMPLE
from roundhouse.serve.settings import Overrides

from ..models import EngineRecord

__all__ = ["PageGuard", "guard_of"]


class PageGuard(BaseModel):
    """What is checked before each step."""

    model_config = ConfigDict(frozen=True)

    level: str
    """``off``, ``tags`` or ``tags+content``."""
    sample: float
    """Of full pages that have their content compared, from 0 to 1; it counts with content alone."""


def guard_of(session: Session, engine_id: str, overrides: Overrides) -> PageGuard | None:
    """The guard, in one statement; None where the engine's manifest does not say it and nothing else was asked for."""
    recipe = EngineRecord.manifest["recipe"]
    wanted = select(recipe["guard"].as_string(), recipe["guard_sample"].as_float()).where(EngineRecord.id == engine_id)
    found = session.execute(wanted).one_or_none()
    usual, sample = (None, None) if found is None else (found[0], found[1])
    level = overrides.guard or usual
    if level is None:
        return None
    if level != usual:
        sample = None  # the recipe's sample belongs to the level that is overridden
    return PageGuard(level=level, sample=overrides.guard_sample or sample or GUARD_SAMPLE)
