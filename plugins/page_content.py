"""What pages held when they were last written: order-aware checksums, each seeded with the tag its holder was issued.

Tags say who a page belongs to, not what lies in it. A write that comes late, after the page was granted to somebody else, and
rows that changed places within a page leave every tag as it was. A checksum of the page's bytes sees both; seeded with the
tag, it also says nothing for anybody who holds the page under another one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xxhash

from .page_tag import FREE, Int32Array

__all__ = ["PageSeals"]


class PageSeals:
    """One seal for each page: the checksum of its bytes (XXH3, 64 bits) and the tag under which it was made.

    Args:
        pages: pages of the pool.
    """

    def __init__(self, pages: int) -> None:
        self._checksums = np.zeros(pages, dtype=np.uint64)
        self._tags = np.full(pages, FREE, dtype=np.int32)

    def seal(self, page: int, tag: int, content: npt.NDArray[np.uint8]) -> None:
        """Note what a page holds now, uint8 [page_bytes]; ``tag`` is its holder's."""
        self._checksums[page] = xxhash.xxh3_64_intdigest(content.data, seed=tag)
        self._tags[page] = tag

    def is_sealed(self, page: int, tag: int) -> bool:
        """Whether the page was sealed by its holder of this tag: nothing is known of a page that was not written yet."""
        return bool(self._tags[page] == tag)

    def are_sealed(self, pages: Int32Array, tags: Int32Array) -> npt.NDArray[np.bool_]:
        """The same of many pages: bool, in the shape of both."""
        sealed: npt.NDArray[np.bool_] = self._tags[pages] == tags
        return sealed

    def is_intact(self, page: int, tag: int, content: npt.NDArray[np.uint8]) -> bool:
        """Whether a sealed page still holds what was sealed."""
        return xxhash.xxh3_64_intdigest(content.data, seed=tag) == int(self._checksums[page])
