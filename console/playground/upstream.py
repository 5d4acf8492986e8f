"""Which deployment is asked, where it answers, and with which key. Addresses are told by its host, never by a request."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.build.home import Home

from ..access.sealing import Sealer
from ..errors import ConflictError, NotFoundError
from ..models import LIVE_STATES, Deployment

__all__ = ["Choice", "Upstream", "choice_of", "choices", "find_upstream", "tls"]


@dataclass(frozen=True)
class Choice:
    """A deployment that might be asked."""

    id: str
    name: str
    state: str
    host: str
    chat: bool
    """False: it continues texts."""
    answers: bool
    """Whether it can be asked at all; one that is not ready may refuse."""


@dataclass(frozen=True)
class Upstream:
    """Where to ask."""

    id: str
    name: str
    url: str
    """Of its OpenAI front, ending with ``/v1``."""
    chat: bool
    key: str | None = field(default=None, repr=False)


def choices(session: Session) -> tuple[Choice, ...]:
    """Every deployment that is there, ready ones first: one statement."""
    found = session.scalars(select(Deployment).where(Deployment.state.in_(LIVE_STATES)).order_by(Deployment.created_at.desc()))
    listed = [_choice(each) for each in found]
    return tuple(sorted(listed, key=lambda each: (each.state != "ready", not each.answers)))


def choice_of(session: Session, deployment_id: str) -> Choice | None:
    """One of them, even when it has ended; None when there is none."""
    found = session.get(Deployment, deployment_id)
    return None if found is None else _choice(found)


def find_upstream(session: Session, deployment_id: str, home: Home) -> Upstream:
    """Where a deployment answers.

    Args:
        session: where to read.
        deployment_id: which.
        home: of the console, which knows the key that secrets are sealed with.

    Raises:
        NotFoundError: there is none.
        ConflictError: it does not answer, or not to this host.
        SetupError: its key was sealed with another key than this console's.
    """
    found = session.get(Deployment, deployment_id)
    if found is None:
        raise NotFoundError(f"there is no deployment {deployment_id}", hint="Choose another.")
    if found.state not in LIVE_STATES:
        raise ConflictError(f"{found.name} is {found.state}", hint="Deploy it again, or choose another.")
    if found.endpoints is None:
        raise ConflictError(f"{found.name} is {found.state} and does not answer yet", hint="Its page says when it is ready.")
    url = str(found.endpoints["openai"])
    if found.host != socket.gethostname() and _is_loopback(url):
        raise ConflictError(
            f"{found.name} listens only to its own host, {found.host}, and this console runs on another",
            hint="Deploy it with an address that this console can reach.",
        )
    key = Sealer.of(home).open(found.sealed).get("api_key") if found.sealed else None
    return Upstream(found.id, found.name, url, bool(found.endpoints["chat"]), key)


@lru_cache
def tls() -> ssl.SSLContext:
    """For whoever asks them. Made once: reading certificates takes longer than a short answer."""
    return ssl.create_default_context()


def _choice(found: Deployment) -> Choice:
    endpoints = found.endpoints or {}
    answers = bool(endpoints) and found.state in LIVE_STATES
    return Choice(found.id, found.name, found.state, found.host, bool(endpoints.get("chat", True)), answers)


def _is_loopback(url: str) -> bool:
    name = urlsplit(url).hostname or ""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
