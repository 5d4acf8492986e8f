"""What admins change while the console runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from ..database.base import Base

__all__ = ["Setting"]


class Setting(Base):
    """One setting by its key; one that is not there has its default."""

    __tablename__ = "setting"

    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[Any]
    changed_at: Mapped[datetime]
    changed_by: Mapped[str]
