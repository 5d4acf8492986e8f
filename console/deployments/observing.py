"""Looking at a deployment where it runs: its supervisor, its front, its counters, its log. Changes nothing."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from http import HTTPStatus

import httpx

from roundhouse.serve.triton.samples import Sample, sample_of

from ..models import DeploymentState
from ..playground.upstream import tls
from ..supervisor.folder import DeploymentFolder, SupervisorState
from ..supervisor.process import find

__all__ = ["GONE", "Observation", "observe"]

GONE = "its processes are gone without a word; the last lines of its log are all there is"
_ANSWER_TIMEOUT_S = 4.0
"""The front itself waits 2 s for Triton."""
_MOST_BYTES = 4 * 2**20
_Answer = tuple[int, str]
"""Status and text; 0 when there is none, whatever comes instead."""


@dataclass(frozen=True)
class Observation:
    """How a deployment is."""

    state: DeploymentState
    said: SupervisorState
    """What its supervisor last said."""
    reason: str | None = None
    hint: str | None = None
    sample: Sample | None = None


def observe(folder: DeploymentFolder, model: str) -> Observation | None:
    """Look at one; None while no supervisor has said anything.

    Args:
        folder: where it is.
        model: its name in Triton.
    """
    running = find(folder)
    said = running.state if running else folder.state()
    if said is None:
        return None
    if running is None and said.state not in ("stopped", "failed"):
        return Observation("dead", said, GONE)
    if said.state != "ready" or said.endpoints is None:
        return Observation(said.state, said, said.reason, said.hint)
    ready, metrics = asyncio.run(_answers(said.endpoints["openai"].removesuffix("/v1") + "/readyz", said.endpoints["metrics"]))
    problem = _problem(ready)
    return Observation("unready" if problem else "ready", said, problem, sample=sample_of(metrics[1], model))


def _problem(ready: _Answer) -> str | None:
    """Why the front would not answer a request now, in its own words; None when it would."""
    status, body = ready
    if status == HTTPStatus.OK:
        return None
    try:
        return str(json.loads(body)["reason"])
    except (ValueError, KeyError, TypeError):
        return "its OpenAI front does not answer"


async def _answers(*urls: str) -> list[_Answer]:
    """Of all at once: a look at all deployments of a home takes as long as the slowest of them."""
    # No proxy of the environment: the addresses are this host's.
    async with httpx.AsyncClient(verify=tls(), timeout=None, trust_env=False) as client:  # each has a deadline
        return await asyncio.gather(*(_answer(client, url) for url in urls))


async def _answer(client: httpx.AsyncClient, url: str) -> _Answer:
    try:
        # Of the whole exchange: a limit for each read never ends with a server that drips.
        async with asyncio.timeout(_ANSWER_TIMEOUT_S):
            return await _get(client, url)
    except (OSError, ValueError, httpx.HTTPError, httpx.InvalidURL):
        return 0, ""


async def _get(client: httpx.AsyncClient, url: str) -> _Answer:
    """An answer's first part, which is enough for any front's metrics."""
    async with client.stream("GET", url, headers={"accept-encoding": "identity"}) as response:
        found = bytearray()
        async for part in response.aiter_raw():
            found += part
            if len(found) >= _MOST_BYTES:
                break
        return response.status_code, found[:_MOST_BYTES].decode(errors="replace")
