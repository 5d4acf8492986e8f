"""Files of results that somebody sends, and those of them that are kept with the runs that were read from them."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from roundhouse.serve.history.raw import MOST_FILE_BYTES

from ..worker.wire import plain_text
from .files import KeptFile

__all__ = ["FileKeeper", "KeptFiles", "SentFile"]

_LONGEST_NAME = 100
_LEFT_OUT = "left-out.txt"
"""As in the folders of runs that were measured: a raw file that names those that are not kept, and says why."""


class SentFile(BaseModel):
    """A file of results, as it came."""

    model_config = ConfigDict(frozen=True)

    name: str
    content: bytes

    @property
    def called(self) -> str:
        """Its name, without folders and what no page could show."""
        return plain_text(Path(self.name).name)[-_LONGEST_NAME:] or "results.json"

    @property
    def sha256(self) -> str:
        """By which runs tell that they were read from it."""
        return hashlib.sha256(self.content).hexdigest()


class KeptFiles(NamedTuple):
    """Raw files of a run."""

    files: tuple[KeptFile, ...] = ()
    too_large: tuple[str, ...] = ()
    """Names of those that are left out for that."""


class FileKeeper:
    """Packs files, each once, however many runs were read from it."""

    def __init__(self) -> None:
        self._kept_with: dict[str, str] = {}
        self._too_large: dict[str, int] = {}

    def kept(self, run: str, files: Sequence[SentFile]) -> KeptFiles:
        """Those of a run, each under a name of its own; what is not kept with it is said in a file of its own."""
        kept: list[KeptFile] = []
        left_out: list[str] = []
        too_large: list[str] = []
        taken = {_LEFT_OUT}
        for file in files:
            name = next(name for name in _names(file.called) if name not in taken)
            taken.add(name)
            if packed := self._packed(run, file):
                kept.append((name, packed))
            elif file.sha256 in self._kept_with:
                left_out.append(f"{name}: kept with run {self._kept_with[file.sha256]}")
            else:
                too_large.append(name)
                size = self._too_large[file.sha256]
                left_out.append(f"{name}: {size:,} bytes compressed; {MOST_FILE_BYTES:,} are kept at most")
        if left_out:
            kept.append((_LEFT_OUT, gzip.compress("".join(f"{line}\n" for line in left_out).encode(), 6)))
        return KeptFiles(tuple(kept), tuple(too_large))

    def _packed(self, run: str, file: SentFile) -> bytes | None:
        """A file, compressed, for the first run that it belongs to; None where it is too large."""
        if file.sha256 in self._kept_with or file.sha256 in self._too_large:
            return None
        packed = gzip.compress(file.content, 6)
        if len(packed) > MOST_FILE_BYTES:
            self._too_large[file.sha256] = len(packed)
            return None
        self._kept_with[file.sha256] = run
        return packed


def _names(called: str) -> Iterator[str]:
    """What a file may be called, where others have its name."""
    yield called
    yield from (f"{number}-{called}" for number in count(2))
