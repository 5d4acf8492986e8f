"""Accounts: who may use the console, and what was done by whom."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from sqlalchemy import CheckConstraint, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from ..database.base import Base

__all__ = ["ApiToken", "AuditEntry", "LoginSession", "Role", "User"]

Role = Literal["viewer", "operator", "admin"]
"""Each may do what the ones before it may."""


class User(Base):
    """Somebody with an account."""

    __tablename__ = "user_account"
    __table_args__ = (CheckConstraint("role IN ('viewer', 'operator', 'admin')", name="role"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    """As it is typed to log in, in lower case."""
    role: Mapped[Role] = mapped_column(String)
    password_hash: Mapped[str]
    """Argon2, with its parameters and salt."""
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]
    last_login_at: Mapped[datetime | None]


class LoginSession(Base):
    """A browser in which somebody is logged in."""

    __tablename__ = "login_session"

    token_hash: Mapped[str] = mapped_column(primary_key=True)
    """SHA-256 of the cookie: who reads the database cannot log in with it."""
    user_id: Mapped[int] = mapped_column(ForeignKey("user_account.id", ondelete="CASCADE"), index=True)
    form_secret: Mapped[str]
    """What forms of this session carry, so that no other site can send them."""
    created_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    address: Mapped[str]
    browser: Mapped[str]


class ApiToken(Base):
    """A program's key. It is shown once, when it is made."""

    __tablename__ = "api_token"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("user_account.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    token_hash: Mapped[str] = mapped_column(unique=True)
    """SHA-256 of the token."""
    shown_start: Mapped[str]
    """Its first characters, to tell tokens apart."""
    scopes: Mapped[list[str]]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class AuditEntry(Base):
    """Something that somebody did."""

    __tablename__ = "audit_entry"
    __table_args__ = (Index("ix_audit_entry_subject", "subject_kind", "subject"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(index=True)
    who: Mapped[str]
    """The account's name then: an entry outlives the account."""
    by: Mapped[str]
    """``browser``, ``token NAME`` or ``command line``."""
    address: Mapped[str]
    action: Mapped[str]
    subject_kind: Mapped[str]
    subject: Mapped[str]
    detail: Mapped[dict[str, Any]]
