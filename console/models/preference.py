"""What somebody likes to see: kept for each account."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from ..database.base import Base

__all__ = ["Preference"]


class Preference(Base):
    """A choice of one account, such as the columns of a table."""

    __tablename__ = "preference"

    user_id: Mapped[int] = mapped_column(ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[Any]
