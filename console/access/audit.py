"""The audit log: who did what, when, and from where."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from ..database.base import utc_now
from ..models import AuditEntry
from .actor import Actor

__all__ = ["audit"]


def audit(session: Session, actor: Actor, action: str, subject_kind: str, subject: str, **detail: Any) -> None:
    """Write down what somebody does, in the transaction in which it is done.

    Args:
        session: of that transaction.
        actor: who does it.
        action: a verb, such as ``build`` or ``deployment.stop``.
        subject_kind: what it is done to: ``engine``, ``job``, ``deployment``, ``user``, ``token``, ``setting``.
        subject: its id or name.
        detail: what else should be remembered; no secrets.
    """
    session.add(
        AuditEntry(
            at=utc_now(),
            who=actor.name,
            by=actor.by,
            address=actor.address,
            action=action,
            subject_kind=subject_kind,
            subject=subject,
            detail=detail,
        )
    )
