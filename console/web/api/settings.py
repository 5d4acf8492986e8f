"""Settings, for programs, and the description of this API."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict

from ...process import ProcessSettings, process_settings
from ...settings_table import TableSettings, change_settings, read_settings
from ..state import state_of
from ..who import Admin, Reading, needs
from .description import describe

__all__ = ["router"]

router = APIRouter(prefix="/api/v1")


class Settings(BaseModel):
    """Both kinds of settings."""

    model_config = ConfigDict(frozen=True)

    process: ProcessSettings
    """What the process that answers runs with."""
    changeable: TableSettings
    """What admins change, for all processes."""


class SettingChanges(BaseModel):
    """What is left out stays as it is; null is what it is when nobody has changed it."""

    model_config = ConfigDict(extra="forbid")

    gpu_hour_price: float | None = None
    currency: str = "USD"
    job_log_days: int | None = None


@router.get("/settings", tags=["settings"], dependencies=[needs("read")])
def settings(request: Request, session: Reading) -> Settings:
    """What this process runs with, and what admins have changed."""
    changeable = read_settings(session)
    session.commit()
    state = state_of(request)
    return Settings(process=process_settings(state.settings, state.database), changeable=changeable)


@router.patch("/settings", tags=["settings"])
def change(request: Request, actor: Admin, changes: SettingChanges) -> TableSettings:
    """Change some."""
    with state_of(request).database.writing() as session:
        return change_settings(session, actor, changes.model_dump(exclude_unset=True))


@router.get("/openapi.json", include_in_schema=False, dependencies=[needs("read")])
def description(request: Request) -> dict[str, Any]:
    """This API, as OpenAPI describes it."""
    return describe(request.app)
