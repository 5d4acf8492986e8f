"""Who holds each page, from the engine's answer to the JSON that goes out, with the ids that clients know."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from ..engine.page_holders import PageHolders
from ..page_map import PAGE_STATES, HeldBy, HoldingRequest, PageMap, PageRun

__all__ = ["page_map_json", "shown_id"]

_LONGEST_ID = 64
_OWN_PART = re.compile(r"-[0-9a-f]{32}$")
"""What the OpenAI front adds to the ids of its clients. Whoever knows it can stop the request, so it is not shown."""


def page_map_json(holders: PageHolders, client_ids: Mapping[str, str]) -> str:
    """A :class:`roundhouse.serve.page_map.PageMap`.

    Args:
        holders: what the engine process said.
        client_ids: of live requests, by the engine's own ids.
    """

    def named(request_ids: list[str]) -> list[HoldingRequest]:
        return [HoldingRequest(each, shown_id(client_ids.get(each, ""))) for each in request_ids]

    lengths, tags, held_by = (memoryview(column).cast("i") for column in (holders.lengths, holders.tags, holders.held_by))
    told = PageMap(
        pages=holders.pages,
        held_by=[HeldBy(named(group.requests), group.more, group.prefix_cache) for group in holders.groups],
        runs=list(map(PageRun, lengths, map(PAGE_STATES.__getitem__, holders.states), tags, held_by)),
    )
    return msgspec.json.encode(told).decode()


def shown_id(client_id: str) -> str:
    """The beginning of an id that a client gave: enough to know it by, and of the front's too little to stop it with."""
    return _OWN_PART.sub("", client_id)[:_LONGEST_ID]
