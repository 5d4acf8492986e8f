"""What a web process runs with, as the settings page and the API tell it. No secrets."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from roundhouse import __version__

from .database.database import Database, shown_url
from .database.schema import schema_state
from .models_allowed import AllowedModels
from .settings import ConsoleSettings

__all__ = ["ProcessSettings", "process_settings"]


class ProcessSettings(BaseModel):
    """What was said on its command line, and what it found."""

    model_config = ConfigDict(frozen=True)

    version: str
    home: str
    database: str
    """Its URL without a password."""
    schema_revision: str
    listens_on: str
    public_url: str | None
    proxies: tuple[str, ...]
    """Whose word is taken for where a request comes from."""
    model_folders: tuple[str, ...]
    """Under which models may lie."""
    worker_beside: bool
    """Whether it keeps a worker running on its own host."""


def process_settings(settings: ConsoleSettings, database: Database) -> ProcessSettings:
    """What this process runs with.

    Raises:
        SetupError: the database cannot be reached.
    """
    return ProcessSettings(
        version=__version__,
        home=str(settings.home.path),
        database=shown_url(database.url),
        schema_revision=schema_state(database).found or "none",
        listens_on=f"{settings.host}, port {settings.port or 'any'}",
        public_url=settings.public_url,
        proxies=settings.trusted_proxies,
        model_folders=tuple(map(str, AllowedModels(settings.model_folders, settings.home).folders)),
        worker_beside=settings.worker,
    )
