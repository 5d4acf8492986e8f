"""What the reuse tree may hand out: for each page, under which prefix it was stored, and the tag it had then.

TensorRT-LLM's tree finds a block of an earlier request by the tokens up to the block's end. It cannot be asked what it holds,
so this follows what it is given. A block that it finds for a prefix must be one that was stored under this prefix, and must
still carry the tag that it had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from roundhouse.plugins.page_tag import FREE

__all__ = ["NEVER_ISSUED", "PrefixBook"]

NEVER_ISSUED = -1
"""Expected of a page that nobody is known to have stored under a prefix: no page ever carries it."""
_DIGEST_BYTES = 16


class PrefixBook:
    """One entry for each page.

    Args:
        pages: pages of the pool.
        page_tokens: tokens a page holds.
    """

    def __init__(self, pages: int, page_tokens: int) -> None:
        self._page_tokens = page_tokens
        self._keys: list[bytes | None] = [None] * pages
        self._tags = np.full(pages, FREE, dtype=np.int32)

    def keys(self, tokens: Sequence[int], kind: object) -> list[bytes]:
        """A key for each page of tokens, the last of which need not be full: a digest of all tokens up to its end.

        Args:
            tokens: of a request, from its first on.
            kind: what keeps requests apart whose tokens are the same, such as a tenant's salt.
        """
        packed = np.asarray(tokens, dtype=np.int64)
        key, found = repr(kind).encode(), []
        for begin in range(0, len(packed), self._page_tokens):
            page = packed[begin : begin + self._page_tokens].tobytes()
            key = hashlib.blake2b(key + page, digest_size=_DIGEST_BYTES).digest()
            found.append(key)
        return found

    def store(self, page: int, key: bytes, tag: int) -> None:
        """The tree may hand out this page for this prefix from now on."""
        self._keys[page] = key
        self._tags[page] = tag

    def expected_tag(self, page: int, key: bytes) -> int:
        """The tag that a page must still carry when it is found for this prefix."""
        known = 0 <= page < len(self._keys) and self._keys[page] == key
        return int(self._tags[page]) if known else NEVER_ISSUED

    def holds(self, page: int, tag: int) -> bool:
        """Whether the tree may hold this page as it was granted under this tag."""
        return self._keys[page] is not None and bool(self._tags[page] == tag)

    def forget(self) -> None:
        """Drop every entry."""
        self._keys = [None] * len(self._keys)
        self._tags[:] = FREE
