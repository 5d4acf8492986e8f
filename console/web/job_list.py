"""Which jobs a list of the API shows, from its URL. Empty means any."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from ..jobs.records import JobFilter
from ..models import JobKind, JobState

__all__ = ["BuildsListed", "JobsListed"]

_Text = Annotated[str, Query(max_length=200)]
_Id = Annotated[str, Query(max_length=64)]
_State = Annotated[JobState | None, Query()]


def _builds(state: _State = None, text: _Text = "", who: _Text = "", engine: _Id = "") -> JobFilter:
    return _filter("build", state, text, who, engine, "")


def _jobs(
    kind: Annotated[JobKind | None, Query()] = None,
    state: _State = None,
    text: _Text = "",
    who: _Text = "",
    engine: _Id = "",
    deployment: _Id = "",
) -> JobFilter:
    return _filter(kind, state, text, who, engine, deployment)


def _filter(kind: JobKind | None, state: JobState | None, text: str, who: str, engine: str, deployment: str) -> JobFilter:
    return JobFilter(
        kinds=() if kind is None else (kind,),
        states=() if state is None else (state,),
        text=text.strip() or None,
        requested_by=who.strip() or None,
        engine_id=engine or None,
        deployment_id=deployment or None,
    )


BuildsListed = Annotated[JobFilter, Depends(_builds)]
JobsListed = Annotated[JobFilter, Depends(_jobs)]
