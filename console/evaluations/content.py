"""An evaluation as its folder has it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from roundhouse.serve.accuracy.records import Evaluation
from roundhouse.serve.accuracy.store import BASE, ITEMS, UNMEASURED, read_evaluation
from roundhouse.serve.history.raw import MOST_FILE_BYTES

from ..benchmarks.files import KeptFile, raw_files

__all__ = ["evaluation_files", "read_content"]

_LINES = (ITEMS, BASE, UNMEASURED)


def read_content(folder: Path) -> Evaluation:
    """An evaluation as it is now.

    Raises:
        ServeError: it is damaged.
    """
    return read_evaluation(folder)


def evaluation_files(folder: Path) -> Iterator[KeptFile]:
    """What can be downloaded of it: every item with its answer, and raw files."""
    for name in _LINES:
        path = folder / f"{name}.jsonl"
        if path.is_file() and not path.is_symlink():
            content = gzip.compress(path.read_bytes(), 6)
            if len(content) <= MOST_FILE_BYTES:
                yield path.name, content
    yield from raw_files(folder)
