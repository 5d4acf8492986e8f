"""The audit log: who did what, when, and from where."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from ..database.base import utc_now
from ..models import AuditEntry
from .actor import Actor

__all__ = ["audit", "audit_each", "audit_repeated"]

_TOGETHER = timedelta(minutes=10)


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


def audit_each(
    session: Session, actor: Actor, action: str, subject_kind: str, subjects: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write down that somebody does the same to many: an entry each, in one statement.

    Args:
        session: of the transaction in which it is done.
        actor: who does it.
        action: as in :func:`audit`.
        subject_kind: as in :func:`audit`.
        subjects: ids or names, each with its detail.
    """
    own: dict[str, Any] = {"at": utc_now(), "who": actor.name, "by": actor.by, "address": actor.address, "action": action}
    own |= {"subject_kind": subject_kind}
    entries = [own | {"subject": subject, "detail": dict(detail)} for subject, detail in subjects.items()]
    if entries:
        session.execute(insert(AuditEntry), entries)


def audit_repeated(session: Session, actor: Actor, action: str, subject_kind: str, subject: str) -> None:
    """Write down what a stranger may do as often as they like: the same within ten minutes is one entry, which counts it.

    Arguments are those of :func:`audit`; the detail ``times`` is how often, where it was more than once.
    """
    same = (
        AuditEntry.at > utc_now() - _TOGETHER,
        AuditEntry.who == actor.name,
        AuditEntry.by == actor.by,
        AuditEntry.address == actor.address,
        AuditEntry.action == action,
        AuditEntry.subject_kind == subject_kind,
        AuditEntry.subject == subject,
    )
    known = session.scalar(select(AuditEntry).where(*same).order_by(AuditEntry.id.desc()).limit(1).with_for_update())
    if known is None:
        audit(session, actor, action, subject_kind, subject)
    else:
        known.detail = {"times": known.detail.get("times", 1) + 1}
