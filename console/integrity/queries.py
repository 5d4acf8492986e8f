"""Finding integrity events, and saying whether all is well."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.serve.triton.samples import Sample

from ..deployments.queries import latest_samples
from ..models import LIVE_STATES, Deployment, IntegrityRecord
from ..paging import Paged, PageOf, paged_rows
from .records import EventRow, IntegrityTotals, Verdict

__all__ = ["EventFilter", "events", "totals", "totals_of", "verdict"]


class EventFilter(BaseModel):
    """Which events are wanted; None does not ask."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    deployment: str | None = Field(default=None, max_length=64)
    """An id."""
    engine: str | None = Field(default=None, max_length=64)
    """An id."""
    kind: Literal["tag", "count", "content"] | None = None


def events(session: Session, wanted: EventFilter, page: PageOf) -> Paged[EventRow]:
    """A page of them, the newest first. Two statements."""
    record = IntegrityRecord
    query = select(record, Deployment.name).outerjoin(Deployment, Deployment.id == record.deployment_id)
    query = query.order_by(record.at.desc(), record.id.desc())
    if wanted.deployment is not None:
        query = query.where(record.deployment_id == wanted.deployment)
    if wanted.engine is not None:
        query = query.where(record.engine_id == wanted.engine)
    if wanted.kind is not None:
        query = query.where(record.kind == wanted.kind)
    rows, total = paged_rows(session, query, page)
    items = tuple(EventRow.model_validate({**_fields(row), "deployment_name": name}) for row, name in rows)
    return Paged(items=items, total=total, page=page.number, size=page.size)


def totals(session: Session) -> list[IntegrityTotals]:
    """What every live deployment that was heard of just now has checked, by name. Two statements."""
    live = (
        select(Deployment.id, Deployment.name).where(Deployment.state.in_(LIVE_STATES)).order_by(Deployment.name, Deployment.id)
    )
    names = dict(session.execute(live).all())
    found = []
    for id_, (sample, _) in latest_samples(session, list(names)).items():
        found.append(totals_of(id_, names[id_], sample.values))
    order = list(names)
    return sorted(found, key=lambda each: order.index(each.deployment_id))


def totals_of(deployment_id: str, name: str, now: Sample) -> IntegrityTotals:
    """What a deployment's latest sample says."""
    counted = {each: getattr(now, each) for each in IntegrityTotals.model_fields if hasattr(now, each)}
    return IntegrityTotals(deployment_id=deployment_id, name=name, **counted)


def verdict(of: list[IntegrityTotals]) -> Verdict:
    """One sentence about all of them."""
    if not of:
        return Verdict(well=True, sentence="Nothing is served now, so nothing is being checked.")
    problems = [f"{each.name} runs steps without its page check and must be restarted" for each in of if not each.guard_alive]
    for each in of:
        if each.mismatches:
            stopped = "1 row was" if each.mismatches == 1 else f"{each.mismatches:,} rows were"
            kept = f", {each.pages_quarantined:,} of {each.pages:,} pages are quarantined" if each.pages_quarantined else ""
            problems.append(f"{each.name}: {stopped} stopped because a page was not theirs or not what it was{kept}")
    served = f"{len(of)} deployment{'s' if len(of) > 1 else ''}"
    checks = sum(each.tag_checks + each.content_checks for each in of)
    if problems:
        return Verdict(well=False, sentence=f"{'; '.join(problems)}. {checks:,} checks over {served}.")
    return Verdict(well=True, sentence=f"All is well: {checks:,} checks, 0 mismatches over {served}.")


def _fields(row: IntegrityRecord) -> dict[str, object]:
    return {name: getattr(row, name) for name in EventRow.model_fields if hasattr(row, name)}
