"""The one-time link that makes the first account, as Jupyter's: printed where the console was started, worth nothing later."""

from __future__ import annotations

import hmac

from .secrets import hash_of, new_secret

__all__ = ["FirstAccountLink"]


class FirstAccountLink:
    """A secret of this process. It is asked for only while there is no account."""

    def __init__(self) -> None:
        self.secret = new_secret()

    def allows(self, given: str) -> bool:
        """Whether this is the secret."""
        return hmac.compare_digest(hash_of(given), hash_of(self.secret))
