"""Names of images, as registries and Docker take them."""

from __future__ import annotations

import re

from roundhouse.errors import UsageError

__all__ = ["require_image"]

_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG, _DIGEST = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", r"sha(?:256:[0-9a-f]{64}|512:[0-9a-f]{128})"
_IMAGE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::{_TAG})?(?:@{_DIGEST})?")
"""The grammar of github.com/distribution/reference, with the digests that registries have."""


def require_image(name: str) -> None:
    """See that this names an image.

    Raises:
        UsageError: it does not.
    """
    if not _IMAGE.fullmatch(name):
        raise UsageError(f"--image {name!r} names no image", hint="Write it like registry.example/roundhouse:gpu.")
