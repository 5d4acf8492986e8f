"""Looking at an OpenAI-compatible endpoint before it is asked: that it answers, which model it has, what it counts."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import SplitResult, urlsplit

from roundhouse.errors import UsageError

from ..history.record import storable

__all__ = [
    "LONGEST_TIMEOUT_S",
    "api_key",
    "base_url",
    "host_of",
    "is_here",
    "metrics_url",
    "model_at",
    "port_of",
    "require_metrics",
]

LONGEST_TIMEOUT_S = 86_400.0
"""That a request may be given: a day."""
_TIMEOUT_S = 10.0
_DENIED = (401, 403)


def base_url(url: str) -> str:
    """The base URL of an endpoint, which ends with ``/v1``.

    Raises:
        UsageError: it is none, or has a secret in it.
    """
    hint = "Put a key into an environment variable, and name that with --api-key-variable."
    parts = _parts(url, "an endpoint", example="http://127.0.0.1:9000/v1", hint=hint)
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path.removesuffix('/v1')}/v1"


def metrics_url(url: str) -> str:
    """The URL of Triton's metrics, as it is asked.

    Raises:
        UsageError: it is none, or has a secret in it.
    """
    hint = "Triton's metrics want none."
    return _parts(url, "metrics", example="http://127.0.0.1:8002/metrics", hint=hint).geturl()


def require_metrics(url: str, model: str) -> None:
    """Raise when a URL of metrics does not tell what the engine of a model counts: a run would lack it and nobody know why.

    Raises:
        UsageError: nothing answers there, it is not ours, or it does not have the model.
    """
    import httpx

    from ..triton.samples import sample_of

    hint = "It is the /metrics of Triton's metrics port; `roundhouse serve` says it. Leave --metrics out for other servers."
    try:
        answer = httpx.get(url, timeout=_TIMEOUT_S, trust_env=not is_here(url))
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise UsageError(f"nothing answers at {url}: {str(error) or type(error).__name__}", hint=hint) from None
    if not answer.is_success or sample_of(answer.text, model) is None:
        raise UsageError(f"{url} tells nothing of an engine of ours called {model!r} (HTTP {answer.status_code})", hint=hint)


def _parts(url: str, of: str, *, example: str, hint: str) -> SplitResult:
    """A URL that can be asked and has nothing in it that must not be kept.

    Raises:
        UsageError: it is none.
    """
    import httpx

    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        asked = httpx.URL(parts.geturl())  # the one that asks is stricter
        usable = usable and bool(asked.host) and asked.port != 0
    except (ValueError, httpx.InvalidURL):
        usable = False
    if not usable:
        raise UsageError(f"{url!r} is no URL of {of}", hint=f"Give one such as {example}.")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise UsageError(f"the URL of {of} has a user, a password or a query in it, which would be kept", hint=hint)
    return parts


def host_of(url: str) -> str:
    """The host that a URL names; empty where it names none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_here(url: str) -> bool:
    """Whether an endpoint is on this machine, by its loopback address."""
    host = host_of(url)
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def port_of(url: str) -> int:
    """The port that a URL names, or that its scheme stands for."""
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def api_key(variable: str | None) -> str | None:
    """The key in an environment variable; None when none is named.

    Raises:
        UsageError: the variable is not set.
    """
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise UsageError(f"the environment variable {variable} is not set", hint="Put the endpoint's key into it.")
    return key


def model_at(url: str, wanted: str | None, key: str | None) -> str:
    """The name of the model that is to be asked.

    Args:
        url: base URL of the endpoint.
        wanted: its name; None takes the only one there is.
        key: of the endpoint.

    Raises:
        UsageError: nothing answers there, it is no such endpoint, or it has no such model.
    """
    names = _models(url, key)
    known = ", ".join(names[:10]) or "none"
    if wanted is not None and wanted not in names:
        raise UsageError(f"{url} has no model {wanted!r}", hint=f"It has: {known}")
    if wanted is None and len(names) != 1:
        raise UsageError(f"{url} has {len(names)} models", hint=f"Choose one with --model. It has: {known}")
    return wanted or names[0]


def _models(url: str, key: str | None) -> list[str]:
    import httpx

    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        answer = httpx.get(f"{url}/models", headers=headers, timeout=_TIMEOUT_S, trust_env=not is_here(url))
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        hint = "Start the server first, or correct the URL."
        raise UsageError(f"nothing answers at {url}: {str(error) or type(error).__name__}", hint=hint) from None
    if answer.status_code in _DENIED:
        hint = "Name the environment variable with its key: --api-key-variable NAME"
        raise UsageError(f"{url} wants a key, or another one (HTTP {answer.status_code})", hint=hint)
    try:
        names = [storable(str(each["id"])) for each in answer.raise_for_status().json()["data"]]
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        message = f"{url}/models does not list models (HTTP {answer.status_code})"
        raise UsageError(message, hint="The URL must be the base of an OpenAI-compatible API; what comes before /v1.") from None
    return names
