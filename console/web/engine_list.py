"""Which engines a list shows, from its URL; pages and API say it alike."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from roundhouse.build.recipe import KvCache, Target, Weights

from ..engines.records import EngineFilter, EngineSort, EngineWhereabouts

__all__ = ["EngineListSort", "EnginesWanted"]

_Text = Annotated[str, Query(max_length=200)]


def _wanted(
    text: _Text = "",
    target: Target | None = None,
    weights: Weights | None = None,
    kv_cache: KvCache | None = None,
    host: _Text = "",
    state: EngineWhereabouts = "here",
) -> EngineFilter:
    return EngineFilter(
        text=text.strip() or None,
        target=target,
        weights=weights,
        kv_cache=kv_cache,
        host=host or None,
        state=state,
    )


EnginesWanted = Annotated[EngineFilter, Depends(_wanted)]
EngineListSort = Annotated[EngineSort, Query()]
