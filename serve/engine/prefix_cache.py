"""The prefix cache: full pages of finished prompts and answers, found again by what they hold.

A page is known by a *key*: a hash of its own tokens and of the key of the page before it, which begins with a hash of the
cache salt. So equal keys mean equal tokens from position 0 on, and equal salts; keys of other salts never meet.

The cache is one more holder of its pages. An entry stores the grant that was issued with the page, a hit copies it. Pages
that only the cache holds are given up, least recently used first, when somebody needs pages.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec
import numpy as np
import numpy.typing as npt

from roundhouse.errors import ServeError

from .pool import Grant, PagePool

__all__ = ["PrefixCache", "page_key", "root_key"]

_KEY_BYTES = 16


def root_key(cache_salt: str, adapter: str = "") -> bytes:
    """The key that stands before the first page. Salt and adapter are encoded with their lengths: they cannot collide."""
    return blake2b(msgspec.msgpack.encode((cache_salt, adapter)), digest_size=_KEY_BYTES, person=b"root").digest()


def page_key(parent: bytes, tokens: Sequence[int]) -> bytes:
    """The key of a full page of ``tokens`` behind the page or root with the key ``parent``."""
    content = np.asarray(tokens, dtype="<i4").tobytes()
    return blake2b(parent + content, digest_size=_KEY_BYTES, person=b"page").digest()


@dataclass(eq=False)
class _Entry:
    grant: Grant
    parent: bytes
    children: dict[bytes, None] = field(default_factory=dict)
    """In the order in which they came: what is given up first must not depend on how a process hashes."""


class PrefixCache:
    """Full pages of one pool by key, in the order in which they were last used."""

    def __init__(self, pool: PagePool) -> None:
        self._pool = pool
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._is_cached = np.zeros(pool.pages, dtype=np.bool_)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def evictable(self) -> int:
        """Pages that nobody but the cache holds."""
        return self._pool.held_once(self._is_cached)

    @property
    def pages(self) -> npt.NDArray[np.bool_]:
        """Which pages the cache holds: bool [P]."""
        return self._is_cached

    def grants(self) -> Iterator[Grant]:
        """What the cache holds."""
        return (entry.grant for entry in self._entries.values())

    def match(self, keys: Sequence[bytes]) -> list[Grant]:
        """Share the pages of the longest known beginning of a chain of keys; the caller holds them from now on."""
        found: list[Grant] = []
        for key in keys:
            entry = self._entries.get(key)
            if entry is None:
                break
            try:
                found.append(self._pool.share(entry.grant))
            except ServeError:  # a fault took the page from under the cache: nobody may find it any more
                self._forget(key)
                break
        self._touch(keys[: len(found)])
        return found

    def offer(self, keys: Sequence[bytes], grants: Sequence[Grant], root: bytes) -> None:
        """Add the full pages of a chain, as far as their keys are not there yet.

        Args:
            keys: the whole chain from the first page on.
            grants: the offering sequence's pages, by column.
            root: the key that stands before the chain.
        """
        for column, key in enumerate(keys):
            if key in self._entries:
                continue
            parent = keys[column - 1] if column else root
            if column and parent not in self._entries:  # it was evicted meanwhile: the chain is broken here
                return
            try:
                shared = self._pool.share(grants[column])
            except ServeError:  # a fault made it stale: the guard will find it, the cache must not spread it
                return
            self._entries[key] = _Entry(shared, parent)
            self._is_cached[shared.page] = True
            if column:
                self._entries[parent].children[key] = None
        self._touch(keys)

    def evict(self, count: int) -> None:
        """Give up pages that nobody else holds until ``count`` of them are free, or none is left to give up."""
        enough = self._pool.free + count
        while self._pool.free < enough:
            key = next((key for key, entry in self._entries.items() if self._pool.is_held_once(entry.grant.page)), None)
            if key is None:
                return
            self._forget(key)

    def forget_pages(self, pages: set[int]) -> None:
        """Give up every entry on these pages, and what stands behind it in its chain."""
        for key in [key for key, entry in self._entries.items() if entry.grant.page in pages]:
            self._forget(key)

    def clear(self) -> None:
        """Give up everything."""
        self._pool.release(self.grants())
        self._entries.clear()
        self._is_cached[:] = False

    def _forget(self, key: bytes) -> None:
        """Drop an entry and everything behind it: without it, nobody can reach them."""
        first = self._entries.get(key)
        if first is None:
            return
        if (parent := self._entries.get(first.parent)) is not None:
            parent.children.pop(key, None)
        doomed = [key]
        while doomed:  # a chain is as long as a context: too long for recursion
            entry = self._entries.pop(doomed.pop())
            doomed += entry.children
            self._is_cached[entry.grant.page] = False
            self._pool.release([entry.grant])

    def _touch(self, keys: Sequence[bytes]) -> None:
        """Make a chain the most recently used, its beginning last: a chain is given up from its end."""
        for key in reversed(keys):
            if key in self._entries:
                self._entries.move_to_end(key)
