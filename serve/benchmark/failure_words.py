"""Kinds of failed requests, in words that stay the same from run to run and from tool to tool."""

from __future__ import annotations

__all__ = ["EMPTY_ANSWER", "UNREACHABLE", "WORDS_OF_EXCEPTIONS"]

UNREACHABLE = "unreachable"
EMPTY_ANSWER = "empty answer"

WORDS_OF_EXCEPTIONS = {
    "InvalidInferenceResultError": EMPTY_ANSWER,
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
"""By class, without its module: of Python, of aiohttp, which both aiperf and vLLM ask with, and of aiperf itself."""
