"""What can go wrong between here and a console, as errors with the console's own words."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import httpx

from roundhouse.errors import (
    BuildError,
    EngineError,
    ModelError,
    PlanRefusedError,
    RoundhouseError,
    ServeError,
    SetupError,
    UsageError,
)

from ..errors import ConflictError, ForbiddenError, NotFoundError
from .address import TOKEN_VARIABLE

__all__ = ["UnreachableError", "error_of_answer", "error_of_network", "is_lasting"]

_KINDS: dict[str, type[RoundhouseError]] = {
    "build": BuildError,
    "conflict": ConflictError,
    "engine": EngineError,
    "forbidden": ForbiddenError,
    "model": ModelError,
    "not-found": NotFoundError,
    "serve": ServeError,
    "setup": SetupError,
    "usage": UsageError,
}
_REASONS = {
    "CERTIFICATE_VERIFY_FAILED": (
        "its certificate is not one that this machine trusts",
        "Have the authority that signed it installed here, or name its file in SSL_CERT_FILE.",
    ),
    "WRONG_VERSION_NUMBER": ("it does not speak TLS there", "Is it http://, or another port?"),
    "Name or service not known": ("no machine is known by that name", "Check the name and the network."),
    "Connection refused": ("nothing listens there", "Is `roundhouse console` running, and is the port right?"),
}


_LASTING = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "Name or service not known")


class UnreachableError(RoundhouseError):
    """A console that cannot be reached, or whose answer was lost on the way; later it may be."""


def is_lasting(error: httpx.TransportError) -> bool:
    """Whether trying again in a moment would end alike: the name, the certificate or the protocol is wrong."""
    return any(sign in str(error) for sign in _LASTING)


def error_of_network(server: str, error: httpx.TransportError) -> UnreachableError:
    """What an error of the network means."""
    text = str(error)
    for sign, (reason, hint) in _REASONS.items():
        if sign in text:
            return UnreachableError(f"the console at {server} cannot be reached: {reason}", hint=hint)
    if isinstance(error, httpx.TimeoutException):
        return UnreachableError(
            f"the console at {server} did not answer in time",
            hint="It may be busy, or a firewall drops what is sent. Try again.",
        )
    return UnreachableError(
        f"the console at {server} cannot be reached: {text or type(error).__name__}", hint="Check the address and the network."
    )


def error_of_answer(server: str, answer: httpx.Response) -> RoundhouseError:
    """What an answer that is no success means: the console's words where it is the console's."""
    problem = _problem(answer)
    if problem is None:
        return _foreign(server, answer)
    detail, hint = str(problem.get("detail") or answer.reason_phrase), problem.get("hint")
    hint = hint if isinstance(hint, str) else None
    if answer.status_code == HTTPStatus.UNAUTHORIZED:
        return UsageError(
            f"the console at {server} does not know this token: it was revoked, has expired, or is another console's",
            hint=f"Make a new one on the page of your account there, for {TOKEN_VARIABLE} or the file of --token-file.",
        )
    kind = str(problem.get("type", "")).rpartition(":")[2]
    if kind == "plan-refused":
        reasons = problem.get("reasons")
        return PlanRefusedError(detail, reasons=tuple(map(str, reasons)) if isinstance(reasons, list) else (), hint=hint)
    return _KINDS.get(kind, _by_status(answer.status_code))(detail, hint=hint)


def _by_status(status: int) -> type[RoundhouseError]:
    return UsageError if status < HTTPStatus.INTERNAL_SERVER_ERROR else RoundhouseError


def _problem(answer: httpx.Response) -> dict[str, Any] | None:
    if not answer.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    try:
        problem = answer.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None
    return problem if isinstance(problem, dict) else None


def _foreign(server: str, answer: httpx.Response) -> RoundhouseError:
    """An answer that is not the API's: of a proxy, of one of the console's guards, or of something else altogether."""
    said = f"{answer.status_code} {answer.reason_phrase}"
    if answer.is_redirect:
        return UsageError(f"{server} leads elsewhere ({said})", hint=f"It names {answer.headers.get('location', 'nothing')}.")
    plain = answer.headers.get("content-type", "").startswith("text/plain")
    words = answer.text.strip()[:300] if plain else "this is no answer of a console"
    return RoundhouseError(f"{server} answered {said}: {words}", hint="Is this the address of a Roundhouse console?")
