"""What the integrity pages need besides the list of events: one of them, what to filter by, and what each guard is set to."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..errors import NotFoundError
from ..models import Deployment, EngineRecord, IntegrityRecord
from .records import EventRow

__all__ = ["EventChoices", "event_choices", "guards_of", "one_event", "silent_ones"]

_MOST_CHOICES = 200


@dataclass(frozen=True)
class EventChoices:
    """Id and name of what there are events of."""

    deployments: tuple[tuple[str, str], ...]
    engines: tuple[tuple[str, str], ...]


def one_event(session: Session, event_id: int) -> EventRow:
    """One event, in one statement.

    Raises:
        NotFoundError: there is none with this number.
    """
    of_it = select(IntegrityRecord, Deployment.name).outerjoin(Deployment, Deployment.id == IntegrityRecord.deployment_id)
    found = session.execute(of_it.where(IntegrityRecord.id == event_id)).one_or_none()
    if found is None:
        raise NotFoundError(f"there is no integrity event {event_id}")
    fields = {name: getattr(found[0], name) for name in EventRow.model_fields if hasattr(found[0], name)}
    return EventRow(**fields, deployment_name=found[1])


def event_choices(session: Session) -> EventChoices:
    """What events can be filtered by, in two statements."""
    deployments = select(Deployment.id, Deployment.name).where(
        Deployment.id.in_(select(IntegrityRecord.deployment_id).where(IntegrityRecord.deployment_id.is_not(None)))
    )
    engines = select(EngineRecord.id, EngineRecord.name).where(EngineRecord.id.in_(select(IntegrityRecord.engine_id)))
    by_name = (
        deployments.order_by(Deployment.name, Deployment.id).limit(_MOST_CHOICES),
        engines.order_by(EngineRecord.name, EngineRecord.id).limit(_MOST_CHOICES),
    )
    return EventChoices(*(tuple((row.id, row.name) for row in session.execute(each)) for each in by_name))


def silent_ones(session: Session, heard_of: list[str]) -> list[str]:
    """Names of the deployments that should answer and were not heard of: one statement.

    Args:
        session: where to read.
        heard_of: ids of those that were.
    """
    running = (Deployment.state.in_(("ready", "unready")), Deployment.id.not_in(heard_of))
    return list(session.scalars(select(Deployment.name).where(*running).order_by(Deployment.name)))


def guards_of(session: Session, deployment_ids: list[str]) -> dict[str, str]:
    """The guard's level of each deployment, as it was started: one statement."""
    recipe = EngineRecord.manifest["recipe"]["guard"].as_string().label("recipe")
    own = Deployment.settings["overrides"]["guard"].as_string().label("own")
    wanted = select(Deployment.id, own, recipe).join(EngineRecord, EngineRecord.id == Deployment.engine_id)
    rows = session.execute(wanted.where(Deployment.id.in_(deployment_ids)))
    return {row.id: row.own or row.recipe or "tags" for row in rows}
