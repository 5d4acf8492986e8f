"""Looking at a deployment where it runs: its supervisor, its front, its counters, its log. Changes nothing."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol, Self, cast

from ..models import DeploymentState
from ..supervisor.folder import DeploymentFolder, SupervisorState
from ..supervisor.process import find
from .samples import Sample, sample_of

__all__ = ["GONE", "Observation", "observe"]

GONE = "its processes are gone without a word; the last lines of its log are all there is"
_ANSWER_TIMEOUT_S = 4.0
"""The front itself waits 2 s for Triton."""
_MOST_BYTES = 4 * 2**20
_no_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class _Answer(Protocol):
    """What urllib gives for every status."""

    @property
    def status(self) -> int: ...

    def read1(self, most: int, /) -> bytes: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


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
    problem = _problem(said.endpoints["openai"])
    metrics = _get(said.endpoints["metrics"])[1]
    return Observation("unready" if problem else "ready", said, problem, sample=sample_of(metrics, model))


def _problem(openai: str) -> str | None:
    """Why the front would not answer a request now, in its own words; None when it would."""
    status, body = _get(openai.removesuffix("/v1") + "/readyz")
    if status == HTTPStatus.OK:
        return None
    try:
        return str(json.loads(body)["reason"])
    except (ValueError, KeyError, TypeError):
        return "its OpenAI front does not answer"


def _get(url: str) -> tuple[int, str]:
    """Status and text of an answer; 0 when there is none, whatever comes instead."""
    try:
        with _answer(url) as answer:
            return answer.status, _text(answer)
    except (OSError, ValueError, http.client.HTTPException):
        return 0, ""


def _answer(url: str) -> _Answer:
    try:
        return cast(_Answer, _no_proxy.open(url, timeout=_ANSWER_TIMEOUT_S))
    except urllib.error.HTTPError as error:
        return cast(_Answer, error)


def _text(answer: _Answer) -> str:
    """Its first part: enough for any front's metrics, and not for ever from one that drips.

    Raises:
        TimeoutError: it takes too long.
    """
    deadline = time.monotonic() + _ANSWER_TIMEOUT_S
    found = b""
    while len(found) < _MOST_BYTES and (part := answer.read1(_MOST_BYTES - len(found))):
        if time.monotonic() > deadline:
            raise TimeoutError
        found += part
    return found.decode(errors="replace")
