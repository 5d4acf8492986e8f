"""Kinds of failed requests, in words that stay the same from run to run, whatever a server writes about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["REFUSED", "UNREACHABLE", "kind_of_failure"]

UNREACHABLE = "unreachable"
REFUSED = frozenset(f"http {code}" for code in (400, 401, 403, 404, 405, 422))
"""When nothing else comes, the requests were wrong, not the server slow."""

_KINDS = {
    "InvalidInferenceResultError": "empty answer",
    "SSEResponseError": "error in the stream",
    "TimeoutError": "timeout",
    "ServerTimeoutError": "timeout",
    "SocketTimeoutError": "timeout",
    "ConnectionTimeoutError": UNREACHABLE,
    "RequestSendTimeout": "timeout",
    "ClientConnectorError": UNREACHABLE,
    "ClientConnectorDNSError": UNREACHABLE,
    "ClientConnectorCertificateError": "bad certificate",
    "ClientConnectorSSLError": "bad certificate",
    "ClientPayloadError": "disconnected",
    "ClientOSError": "disconnected",
    "ClientConnectionResetError": "disconnected",
    "ConnectionResetError": "disconnected",
    "ServerDisconnectedError": "disconnected",
}


def kind_of_failure(error: Mapping[str, Any]) -> str:
    """In a few words.

    Args:
        error: aiperf's: ``type``, ``code`` where there was an answer with a status, ``message``.
    """
    known = _KINDS.get(str(error.get("type")))
    if known is not None:
        return known
    code = error.get("code")
    return f"http {code}" if isinstance(code, int) and 100 <= code < 600 else str(error.get("type") or "unknown")
