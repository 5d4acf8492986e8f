"""Raw files of a measurement: compressed, and limited in what they take."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from ..disk import writing

__all__ = ["MOST_BYTES", "MOST_FILE_BYTES", "RawFiles"]

MOST_FILE_BYTES = 4 * 2**20
"""Of one file, compressed."""
MOST_BYTES = 24 * 2**20
"""Of all raw files of a record, compressed."""
_LEFT_OUT = "left-out.txt"


class RawFiles:
    """The raw files of one record.

    Args:
        folder: where they lie, made with the first.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._taken = 0

    def keep(self, name: str, source: Path) -> bool:
        """Keep a copy of a file as ``<name>.gz``; what is too large is left out and named in ``left-out.txt``.

        Returns:
            Whether it was kept.

        Raises:
            ServeError: it cannot be read or written.
        """
        with writing("a raw file", self.folder, variable="ROUNDHOUSE_HOME"):
            kept = self.folder / f"{name}.gz"
            kept.parent.mkdir(parents=True, exist_ok=True)
            try:
                with source.open("rb") as content, gzip.open(kept, "wb", compresslevel=6) as packed:
                    shutil.copyfileobj(content, packed)
            except OSError:
                kept.unlink(missing_ok=True)  # half of one would be taken for all of it
                raise
            size = kept.stat().st_size
            if size > MOST_FILE_BYTES or self._taken + size > MOST_BYTES:
                kept.unlink()
                with (self.folder / _LEFT_OUT).open("a", encoding="utf-8") as left_out:
                    left_out.write(f"{name}: {size:,} bytes compressed\n")
                return False
            self._taken += size
            return True
