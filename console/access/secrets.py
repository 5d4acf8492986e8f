"""Secrets that are drawn here, given out once, and kept only as a hash."""

from __future__ import annotations

import hashlib
import secrets

__all__ = ["hash_of", "new_secret"]


def new_secret(prefix: str = "") -> str:
    """256 random bits as text, behind a prefix that says what it is."""
    return prefix + secrets.token_urlsafe(32)


def hash_of(secret: str) -> str:
    """SHA-256: enough for random secrets of this length, which nobody can guess. Passwords need more."""
    return hashlib.sha256(secret.encode()).hexdigest()
