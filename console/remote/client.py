"""Asks a console's API, and reads its answers into the records that it answers with."""

from __future__ import annotations

import secrets
import ssl
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError

from roundhouse import __version__
from roundhouse.errors import RoundhouseError

from .address import is_this_machine
from .failures import error_of_answer, error_of_network, is_lasting

__all__ = ["Client", "Query"]

T = TypeVar("T")
Query = Mapping[str, str | int | float | bool | None]
"""Parameters of a list; None leaves one out."""
_BASE = "/api/v1"
_PAUSES_S = (0.2, 1.0, 3.0)
"""Before a request is sent once more whose answer, or connection, was lost."""
_TIMEOUT = httpx.Timeout(60, connect=10)


class Client:
    """One console, asked with one token.

    Args:
        server: from :func:`~.address.server_address`.
        token: which speaks for somebody there.
    """

    def __init__(self, server: str, token: str) -> None:
        self.server = server
        here = is_this_machine(urlsplit(server).hostname or "")
        self._http = httpx.Client(
            base_url=server + _BASE,
            headers={
                "authorization": f"Bearer {token}",
                "accept": "application/json",
                "user-agent": f"roundhouse/{__version__}",
            },
            timeout=_TIMEOUT,
            verify=ssl.create_default_context(),  # what this machine trusts, and SSL_CERT_FILE
            trust_env=not here,  # what goes to this machine goes through no proxy
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give up the connections."""
        self._http.close()

    def get(self, path: str, answer: type[T] | TypeAdapter[T], query: Query | None = None) -> T:
        """Read something.

        Args:
            path: below ``/api/v1``.
            answer: what is answered with.
            query: filters and the like.

        Raises:
            UnreachableError: there was no answer.
            RoundhouseError: what the console said is wrong.
        """
        return self._parsed(answer, self._ask("GET", path, query=query))

    def post(self, path: str, answer: type[T] | TypeAdapter[T], body: Any = None, *, repeatable: bool = True) -> T:
        """Ask for something to be done; sent with a key of its own, so that asking again does nothing twice.

        Args:
            path: below ``/api/v1``.
            answer: what is answered with.
            body: to be sent as JSON; None: nothing.
            repeatable: whether it may be sent again when its answer was lost.

        Raises:
            UnreachableError: there was no answer; it may have been done.
            RoundhouseError: what the console said is wrong.
        """
        return self._parsed(answer, self._ask("POST", path, body=body, repeatable=repeatable))

    def delete(self, path: str, answer: type[T] | TypeAdapter[T]) -> T:
        """Have something removed.

        Raises:
            UnreachableError: there was no answer; it may have been done.
            RoundhouseError: what the console said is wrong.
        """
        return self._parsed(answer, self._ask("DELETE", path))

    def _ask(
        self,
        method: Literal["GET", "POST", "DELETE"],
        path: str,
        *,
        query: Query | None = None,
        body: Any = None,
        repeatable: bool = True,
    ) -> httpx.Response:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        headers = {} if method == "GET" else {"idempotency-key": secrets.token_urlsafe(24)}
        request = self._http.build_request(method, path, params=given, json=body, headers=headers)
        answer = self._sent(request, repeatable)
        if not answer.is_success:
            raise error_of_answer(self.server, answer)
        return answer

    def _sent(self, request: httpx.Request, repeatable: bool) -> httpx.Response:
        for pause_s in (*_PAUSES_S, None):
            try:
                return self._http.send(request)
            except httpx.TransportError as error:
                # Where no connection came about nothing was asked, and asking again is safe whatever it is.
                unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if pause_s is None or not (repeatable or unsent) or is_lasting(error):
                    raise error_of_network(self.server, error) from None
                time.sleep(pause_s)
        raise AssertionError("the last try returns or raises")

    def _parsed(self, answer: type[T] | TypeAdapter[T], response: httpx.Response) -> T:
        adapter = answer if isinstance(answer, TypeAdapter) else TypeAdapter(answer)
        try:
            return adapter.validate_json(response.content or b"null", extra="ignore")  # a newer console may tell more
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "its body"
            raise RoundhouseError(
                f"the answer of {self.server} is not what Roundhouse {__version__} reads: {where}: {first['msg']}",
                hint="Use the version that the console has.",
            ) from None
