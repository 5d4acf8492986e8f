"""Addresses as people type them: what is none is refused before anything connects to it, or shows it in a program to copy."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

__all__ = ["Host", "HostPort", "HttpUrl"]

_HOST = r"(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?)"
_V6 = r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*"
_HOST_PORT = re.compile(rf"(?:{_HOST}|\[{_V6}\]):(?P<port>[0-9]{{1,5}})")
_URL = re.compile(rf"https?://(?:{_HOST}|\[{_V6}\])(?::(?P<port>[0-9]{{1,5}}))?(?:/[A-Za-z0-9._~%/-]*)?")
_MOST_PORT = 65535


def _is_host(text: str) -> str:
    if re.fullmatch(rf"{_HOST}|{_V6}", text) is None:
        raise ValueError("it is no address or name of a host")
    return text


def _is_host_port(text: str) -> str:
    found = _HOST_PORT.fullmatch(text)
    if found is None or not 0 < int(found["port"]) <= _MOST_PORT:
        raise ValueError("it is not written like gpu-1:8001")
    return text


def _is_url(text: str) -> str:
    found = _URL.fullmatch(text)
    if found is None or not 0 < int(found["port"] or 1) <= _MOST_PORT:
        raise ValueError("it is no URL like http://gpu-1:8000: they begin with http:// or https://, without user or query")
    return text


Host = Annotated[str, Field(max_length=255), AfterValidator(_is_host)]
"""A name or an address, IPv6 without brackets."""
HostPort = Annotated[str, Field(max_length=300), AfterValidator(_is_host_port)]
"""``host:port``, IPv6 in brackets."""
HttpUrl = Annotated[str, Field(max_length=1000), AfterValidator(_is_url)]
"""``http://host:port/path`` or ``https://…``; port and path may be missing."""
