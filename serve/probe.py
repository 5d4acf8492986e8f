"""Asks servers whether they are ready, for health checks of containers: ``python -m roundhouse.serve.probe [URL...]``.

Exit code 0 when all are; else 1, and standard error says why not. Slim images have no curl, and a probe comes every few
seconds: nothing but the standard library is loaded.
"""

from __future__ import annotations

import http.client
import sys
from collections.abc import Sequence
from urllib.parse import urlsplit

__all__ = ["USUAL", "main", "problem"]

USUAL = ("http://127.0.0.1:9000/readyz", "http://127.0.0.1:8080/readyz")
"""The OpenAI front of ``roundhouse serve`` and the console, where an image's commands put them."""
_TIMEOUT_S = 4.0
_SHOWN = 300
_OK = 200


def problem(url: str, timeout_s: float = _TIMEOUT_S) -> str | None:
    """Why a server is not ready, or None when it answers 200.

    Args:
        url: with the scheme http; no proxy is asked, and no redirection followed.
        timeout_s: for connecting, and for each part of the answer.

    Raises:
        ConnectionRefusedError: nobody listens there.
    """
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=timeout_s)
    try:
        connection.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        answer = connection.getresponse()
        text = answer.read(_SHOWN).decode(errors="replace").strip()
    except ConnectionRefusedError:
        raise
    except (OSError, http.client.HTTPException) as error:
        return f"{url}: {error or type(error).__name__}"
    finally:
        connection.close()
    return None if answer.status == _OK else f"{url}: {answer.status} {text}".rstrip()


def main(urls: Sequence[str]) -> int:
    """Ask all of them, and say what is wrong.

    Args:
        urls: each must be ready. Empty: of :data:`USUAL` at least one must listen, and each that does must be ready.
    """
    problems = []
    silent = 0
    for url in urls or USUAL:
        try:
            found = problem(url)
        except ConnectionRefusedError:
            silent += 1
            found = f"{url}: nobody listens" if urls else None
        if found:
            problems.append(found)
    if not urls and silent == len(USUAL):
        problems.append(f"nobody listens: {', '.join(USUAL)}")
    for each in problems:
        sys.stderr.write(f"{each}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
