"""What passes between Triton's stub (client) and the engine process, as msgpack over ZeroMQ.

Client → engine: :class:`~roundhouse.serve.engine.request.Request`, :class:`Cancel`, :class:`Pages`.
Engine → client: :class:`Ready` once, then :class:`Outputs` after each step that had any,
:class:`~roundhouse.serve.engine.status.Status` about once a second, and
:class:`~roundhouse.serve.engine.page_holders.PageHolders` when asked.
"""

from __future__ import annotations

import msgspec

from ..engine.page_holders import PageHolders
from ..engine.request import Output, Request
from ..engine.status import Status

__all__ = ["Cancel", "FromClient", "FromEngine", "Outputs", "Pages", "Ready"]


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag="cancel"):
    """End this request and give its pages back. Unknown ids are ignored: it may just have ended."""

    request_id: str


class Pages(msgspec.Struct, frozen=True, tag="pages"):
    """Say who holds each page, before the next step."""


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """The engine is loaded and takes requests."""

    engine_id: str
    pages: int
    page_tokens: int
    max_seq_len: int
    guard: str
    """What the settings ask to be checked before every step: off, tags or tags+content."""


class Outputs(msgspec.Struct, frozen=True, tag="outputs"):
    """What came out of one step, for all requests: one message costs far less than one for each of them."""

    outputs: list[Output]


FromClient = Request | Cancel | Pages
FromEngine = Ready | Outputs | Status | PageHolders
