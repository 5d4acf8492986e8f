"""What passes between Triton's stub (client) and the engine process, as msgpack over ZeroMQ.

Client → engine: :class:`~roundhouse.serve.engine.request.Request`, :class:`Cancel`.
Engine → client: :class:`Ready` once, then ``Chunk`` and ``Failure`` per request and :class:`Status` about once a second.
"""

from __future__ import annotations

import msgspec

from ..engine.request import Chunk, Failure, Request
from ..engine.status import Status

__all__ = ["Cancel", "FromClient", "FromEngine", "Ready"]


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag="cancel"):
    """End this request and give its pages back. Unknown ids are ignored: it may just have ended."""

    request_id: str


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """The engine is loaded and takes requests."""

    engine_id: str
    pages: int
    page_tokens: int
    max_seq_len: int
    guard: str


FromClient = Request | Cancel
FromEngine = Ready | Chunk | Failure | Status
