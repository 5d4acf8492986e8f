"""Asks a deployment and passes on what it says, as it says it. Whoever stops listening ends the request behind it."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from http import HTTPStatus
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict

from .question import Question
from .upstream import Upstream, tls

__all__ = ["Done", "Part", "Problem", "Words", "answer"]

_CONNECT_S, _SILENCE_S = 5.0, 300.0
_LONGEST_ERROR = 65_536


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True)


class Words(_Told):
    """A piece of the answer."""

    text: str


class Done(_Told):
    """The answer has ended by itself."""

    finish_reason: str
    prompt_tokens: int | None
    cached_tokens: int | None
    tokens: int | None
    """Of the answer."""
    ttft_s: float | None
    """From the request to the first piece."""
    tokens_per_s: float | None
    """After the first piece, so without the wait for it; None for answers of a single piece."""


class Problem(_Told):
    """There is no answer, or no more of it."""

    problem: str
    hint: str | None = None


Part = Words | Done | Problem


async def answer(upstream: Upstream, question: Question) -> AsyncGenerator[Part, None]:
    """Ask, and yield pieces until :class:`Done` or :class:`Problem`, which is the last. Closing it closes the connection."""
    route, body = question.request(upstream.name, chat=upstream.chat)
    headers = {"authorization": f"Bearer {upstream.key}"} if upstream.key else {}
    timeout = httpx.Timeout(_SILENCE_S, connect=_CONNECT_S)
    asked = time.monotonic()  # the front begins its answer only with the first piece
    # No proxy of the environment: the address is one of our own hosts'.
    async with httpx.AsyncClient(verify=tls(), timeout=timeout, trust_env=False) as client:
        try:
            async with client.stream("POST", f"{upstream.url}/{route}", json=body, headers=headers) as response:
                if response.status_code != HTTPStatus.OK:
                    yield _refused(upstream, response, await _start_of(response))
                    return
                async for part in _read(upstream, response, asked):
                    yield part
        except httpx.ConnectError:
            yield Problem(problem=f"{upstream.name} does not answer at {upstream.url}", hint="Its page says how it is.")
        except httpx.TimeoutException:
            yield Problem(problem=f"{upstream.name} said nothing for too long", hint="Its page says whether it still runs.")
        except (httpx.HTTPError, ValueError):
            yield Problem(problem=f"{upstream.name} broke off: the connection was lost", hint="Its page says how it is.")


async def _read(upstream: Upstream, response: httpx.Response, asked: float) -> AsyncIterator[Part]:
    reason = ""
    usage: dict[str, Any] = {}
    first: float | None = None
    last = asked
    async for line in response.aiter_lines():
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or data == "[DONE]":
            continue
        chunk = json.loads(data)
        if "error" in chunk:
            yield _stopped(upstream, chunk["error"])
            return
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices") or ():
            text = choice.get("text") or (choice.get("delta") or {}).get("content") or ""
            reason = choice.get("finish_reason") or reason
            if text:
                last = time.monotonic()
                first = last if first is None else first
                yield Words(text=text)
    if not reason:
        yield Problem(problem=f"{upstream.name} broke off before the end", hint="Its page says how it is.")
        return
    tokens = usage.get("completion_tokens")
    lasted = 0.0 if first is None else last - first
    yield Done(
        finish_reason=reason,
        prompt_tokens=usage.get("prompt_tokens"),
        cached_tokens=(usage.get("prompt_tokens_details") or {}).get("cached_tokens"),
        tokens=tokens,
        ttft_s=None if first is None else first - asked,
        tokens_per_s=(tokens - 1) / lasted if tokens and tokens > 1 and lasted > 0 else None,
    )


async def _start_of(response: httpx.Response) -> bytes:
    body = b""
    async for part in response.aiter_bytes():
        body += part
        if len(body) > _LONGEST_ERROR:
            break
    return body


def _refused(upstream: Upstream, response: httpx.Response, body: bytes) -> Problem:
    """What an error status means here."""
    name, status = upstream.name, response.status_code
    said = _message(body) or f"status {status}"
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        hint = "It was started with another key than the console keeps; deploy it again."
        return Problem(problem=f"{name} refuses the console's API key", hint=hint)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Problem(problem=f"{name} is overloaded: {said}", hint="Nothing was generated. Try again in a moment.")
    if status == HTTPStatus.NOT_FOUND:
        hint = "Another server may have taken its port; its page says how it is."
        return Problem(problem=f"what answers at {upstream.url} does not serve {name}", hint=hint)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Problem(problem=f"{name} cannot answer now: {said}", hint="Its page says how it is.")
    return Problem(problem=f"{name} refuses this: {said}")


def _stopped(upstream: Upstream, error: dict[str, Any]) -> Problem:
    return Problem(problem=f"{upstream.name} stopped: {error.get('message', 'it does not say why')}")


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return ""
