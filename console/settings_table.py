"""What admins change while the console runs, kept in the table ``setting``: one row for what is not as it was made."""

from __future__ import annotations

import logging
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from .access.actor import Actor
from .access.audit import audit
from .database.base import utc_now
from .errors import FieldError
from .models import Setting

__all__ = ["TableSettings", "change_settings", "read_settings"]

_log = logging.getLogger(__name__)


class TableSettings(BaseModel):
    """Settings that hold for all consoles and workers of a database. Their names are the keys of the table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpu_hour_price: float | None = Field(default=None, gt=0, le=100_000, allow_inf_nan=False)
    """What an hour of one GPU costs; plans show what a million tokens cost then. None: they do not."""
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")
    """Of the price, as ISO 4217 writes it."""
    job_log_days: int | None = Field(default=90, ge=1, le=3650)
    """How long logs of jobs that have ended are kept, in days. None: for ever."""


def read_settings(session: Session) -> TableSettings:
    """What is set, in one statement. What this version does not know, or cannot be, is passed over: the default holds."""
    rows = session.execute(select(Setting.key, Setting.value).where(Setting.key.in_(TableSettings.model_fields)))
    return TableSettings(**{row.key: row.value for row in rows if _can_be(row.key, row.value)})


def change_settings(session: Session, actor: Actor, changes: dict[str, Any]) -> TableSettings:
    """Change some; the others stay.

    Args:
        session: a writing transaction.
        actor: an admin.
        changes: values by name.

    Raises:
        ForbiddenError: somebody else.
        FieldError: a value that cannot be.
    """
    actor.require("admin")
    before = read_settings(session)
    after = _checked(before.model_dump() | changes)
    for key, value in after.model_dump().items():
        if value == (was := getattr(before, key)):
            continue
        session.merge(Setting(key=key, value=value, changed_at=utc_now(), changed_by=actor.name))
        audit(session, actor, "setting.change", "setting", key, before=was, after=value)
    return after


def _can_be(key: str, value: Any) -> bool:
    try:
        TableSettings(**{key: value})
    except ValidationError:
        _log.error("setting %s has a value that cannot be; its default is used", key)
        return False
    return True


def _checked(values: dict[str, Any]) -> TableSettings:
    try:
        return TableSettings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        raise FieldError(str(first["loc"][0]), first["msg"]) from None
