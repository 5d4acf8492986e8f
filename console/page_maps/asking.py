"""Asks a deployment's front who holds each page of its pool."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus

import httpx
import msgspec

from roundhouse.serve.page_map import PageMap

from ..errors import ConflictError
from ..playground.upstream import Upstream, tls

__all__ = ["ask_page_map"]

_CONNECT_S, _WHOLE_S = 1.0, 3.0
"""Whoever looks is shown counts instead; a step that takes longer is no reason to let them wait."""
_LARGEST = 32 * 2**20
_ITS_STATE = "Its state and its log say more."


async def ask_page_map(upstream: Upstream) -> PageMap:
    """What the front says now.

    Raises:
        ConflictError: it says nothing, or nothing that can be read.
    """
    name = upstream.name
    try:
        async with asyncio.timeout(_WHOLE_S):
            status, body = await _get(upstream)
    except TimeoutError:
        raise ConflictError(f"{name} has not said it within {_WHOLE_S:.0f} s", hint="It speaks between two steps.") from None
    except httpx.HTTPError:
        raise ConflictError(f"{name} does not answer at {upstream.url}", hint=_ITS_STATE) from None
    if status == HTTPStatus.OK:
        return _read(name, body)
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        hint = "It was started with another key than the console keeps; deploy it again."
        raise ConflictError(f"{name} refuses the console's API key", hint=hint)
    if status == HTTPStatus.NOT_FOUND:
        hint = "It may be older than this console; deploy it again."
        raise ConflictError(f"what answers at {upstream.url} does not tell it of {name}", hint=hint)
    raise ConflictError(f"{name} cannot say it now: {_message(body) or f'status {status}'}", hint=_ITS_STATE)


async def _get(upstream: Upstream) -> tuple[int, bytes]:
    headers = {"authorization": f"Bearer {upstream.key}"} if upstream.key else {}
    timeout = httpx.Timeout(_WHOLE_S, connect=_CONNECT_S)
    # No proxy of the environment: the address is one of our own hosts'.
    async with httpx.AsyncClient(verify=tls(), timeout=timeout, trust_env=False) as client:
        asked = client.stream("GET", f"{upstream.url}/pages", params={"model": upstream.name}, headers=headers)
        async with asked as response:
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                if len(body) > _LARGEST:
                    return HTTPStatus.OK, b""  # no page map is as large
            return response.status_code, bytes(body)


def _read(name: str, body: bytes) -> PageMap:
    try:
        told = msgspec.json.decode(body, type=PageMap)
    except msgspec.MsgspecError:
        told = None
    if told is None or not _adds_up(told):
        raise ConflictError(f"what {name} says of its pages cannot be read", hint="Another server may have taken its port.")
    return told


def _adds_up(told: PageMap) -> bool:
    people = len(told.held_by)
    fine = all(run.pages > 0 and -1 <= run.held_by < people for run in told.runs)
    return fine and sum(run.pages for run in told.runs) == told.pages


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])[:500]
    except (ValueError, KeyError, TypeError):
        return ""
