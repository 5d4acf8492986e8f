"""The way around the console: what is where, and what needs attention."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from ..access.actor import Actor, Scope
from ..models import LIVE_JOB_STATES, LIVE_STATES, Deployment, Job

__all__ = ["Attention", "NavEntry", "NavGroup", "attention", "navigation"]


@dataclass(frozen=True)
class Attention:
    """What the navigation counts."""

    building: int = 0
    """Jobs that wait or run."""
    serving: int = 0
    """Deployments that are there."""
    failing: int = 0
    """Deployments that failed or died and were not put away."""


@dataclass(frozen=True)
class NavEntry:
    """A way to a page."""

    label: str
    href: str
    icon: str
    current: bool
    count: int | None = None
    alarm: bool = False


@dataclass(frozen=True)
class NavGroup:
    """Entries that belong together."""

    entries: tuple[NavEntry, ...]


_MAIN = (
    ("Home", "/", "home"),
    ("Plan", "/plan", "plan"),
    ("Builds", "/builds", "build"),
    ("Engines", "/engines", "engine"),
    ("Deployments", "/deployments", "deployment"),
    ("Playground", "/playground", "chat"),
    ("Benchmarks", "/benchmarks", "benchmark"),
    ("Integrity", "/integrity", "integrity"),
)
_ALSO = {"/benchmarks": ("/evaluations",)}
"""Pages that belong to an entry, and lie elsewhere."""
_REST: tuple[tuple[str, str, str, Scope], ...] = (
    ("Workers", "/workers", "worker", "read"),
    ("Users", "/users", "users", "admin"),
    ("Audit", "/audit", "audit", "admin"),
    ("Settings", "/settings", "settings", "read"),
)


def attention(session: Session) -> Attention:
    """Count it: one statement."""
    jobs = select(func.count()).select_from(Job).where(Job.state.in_(LIVE_JOB_STATES)).scalar_subquery()
    serving = select(func.count()).select_from(Deployment).where(Deployment.state.in_(LIVE_STATES)).scalar_subquery()
    failing = select(func.count()).select_from(Deployment).where(Deployment.state.in_(("failed", "dead"))).scalar_subquery()
    return Attention(*session.execute(select(jobs, serving, failing)).one())


def navigation(path: str, actor: Actor | None, counted: Attention) -> tuple[NavGroup, ...]:
    """The navigation as somebody sees it on a page; nothing for who is not logged in."""
    if actor is None:
        return ()
    counts = {"/builds": (counted.building, False), "/deployments": (counted.serving, counted.failing > 0)}

    def entry(label: str, href: str, icon: str) -> NavEntry:
        count, alarm = counts.get(href, (0, False))
        current = any(_is_within(path, each) for each in (href, *_ALSO.get(href, ())))
        return NavEntry(label, href, icon, current, count or None, alarm)

    main = tuple(entry(*each) for each in _MAIN)
    rest = tuple(entry(label, href, icon) for label, href, icon, scope in _REST if actor.may(scope))
    return (NavGroup(main), NavGroup(rest))


def _is_within(path: str, href: str) -> bool:
    return path == href or (href != "/" and path.startswith(f"{href}/"))
