"""Optional API keys: read from the environment or a file, and asked for before anything of a request is read."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from roundhouse.errors import UsageError

from .errors import ApiError

__all__ = ["KEYS_FILE_VARIABLE", "KEY_VARIABLE", "ApiKeys", "RequireKey"]

KEY_VARIABLE, KEYS_FILE_VARIABLE = "ROUNDHOUSE_API_KEY", "ROUNDHOUSE_API_KEYS_FILE"
_OPEN_PATHS = ("/healthz", "/readyz")


class ApiKeys:
    """The keys that are let in. Only their digests are kept, so that no log or traceback can show one.

    Args:
        keys: at least one.

    Raises:
        UsageError: there is none, or one holds white space or other than ASCII, which no header carries.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = []
        for key in keys:
            if not key.isascii() or not key.isprintable() or " " in key:
                raise UsageError("an API key holds a character other than visible ASCII")
            self._digests.append(_digest(key.encode()))
        if not self._digests:
            raise UsageError("there is no API key in what was given", hint="Write one key a line.")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self | None:
        """The keys that the environment names: one in ROUNDHOUSE_API_KEY, one a line of the file ROUNDHOUSE_API_KEYS_FILE.

        None when neither is set. In the file, lines that are empty or begin with # do not count.

        Raises:
            UsageError: the file cannot be read, or what was given holds no usable key.
        """
        keys = [environment[KEY_VARIABLE]] if environment.get(KEY_VARIABLE) else []
        if not environment.get(KEYS_FILE_VARIABLE):
            return cls(keys) if keys else None
        path = Path(environment[KEYS_FILE_VARIABLE])
        try:
            lines = [line.strip() for line in path.read_text().splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise UsageError(f"{KEYS_FILE_VARIABLE}: {path} cannot be read: {reason}") from None
        return cls([*keys, *(line for line in lines if line and not line.startswith("#"))])

    def allow(self, key: bytes) -> bool:
        """Whether this is one of the keys. Takes the same time whichever it is, and however much of it is right."""
        asked = _digest(key)
        return sum(hmac.compare_digest(asked, known) for known in self._digests) > 0


class RequireKey:
    """ASGI middleware. Only the paths that say how the server is are open.

    Args:
        app: the application.
        keys: who may pass.
    """

    def __init__(self, app: ASGIApp, keys: ApiKeys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one lifespan."""
        if scope["type"] != "http" or scope["path"] in _OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._keys.allow(key.strip().encode()):
            await self._app(scope, receive, send)
            return
        problem = "the API key is wrong" if key else "this server wants an API key: Authorization: Bearer KEY"
        await ApiError(401, problem, code="invalid_api_key").response(scope, receive, send)


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
