"""Secrets that must be used again are kept encrypted: who reads the database cannot read them.

The key comes from ROUNDHOUSE_SECRET_KEY, or from ``console.key`` in the home, which is made on first use. Consoles and workers
on several hosts need the same key, so they need the variable.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from typing import Self

from cryptography.fernet import Fernet, InvalidToken

from roundhouse.build.home import Home
from roundhouse.errors import SetupError

__all__ = ["KEY_VARIABLE", "Sealer"]

KEY_VARIABLE = "ROUNDHOUSE_SECRET_KEY"
_SHORTEST = 32


class Sealer:
    """Encrypts and decrypts.

    Args:
        key: any text that cannot be guessed, of 32 characters at least.

    Raises:
        SetupError: it is shorter.
    """

    def __init__(self, key: str) -> None:
        if len(key) < _SHORTEST:
            raise SetupError(
                f"the key in {KEY_VARIABLE} has {len(key)} characters; it needs {_SHORTEST}",
                hint='Make one with `python -c "import secrets; print(secrets.token_urlsafe(32))"`.',
            )
        self._fernet = Fernet(base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()))

    @classmethod
    def of(cls, home: Home, environment: Mapping[str, str] = os.environ) -> Self:
        """With the environment's key, or else the home's.

        Raises:
            SetupError: the key is too short, or its file can be neither read nor made.
        """
        return cls(environment.get(KEY_VARIABLE) or _key_of(home))

    def seal(self, values: Mapping[str, str]) -> str:
        """Encrypt."""
        return self._fernet.encrypt(json.dumps(dict(values)).encode()).decode()

    def open(self, sealed: str) -> dict[str, str]:
        """Decrypt.

        Raises:
            SetupError: it was sealed with another key.
        """
        try:
            values: dict[str, str] = json.loads(self._fernet.decrypt(sealed.encode()))
        except InvalidToken:
            raise SetupError(
                "these secrets were sealed with another key",
                hint=f"Give consoles and workers on all hosts the same {KEY_VARIABLE}, or enter the secrets again.",
            ) from None
        return values


def _key_of(home: Home) -> str:
    path = home.path / "console.key"
    try:
        if not path.exists():
            home.path.mkdir(parents=True, exist_ok=True)
            fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
            with contextlib.suppress(FileExistsError):  # another process was faster: its key is the key
                os.link(fresh, path)
            fresh.unlink()
        return path.read_text().strip()
    except OSError as error:
        raise SetupError(f"the key of the console's secrets, {path}, cannot be read or made: {error.strerror}") from None
