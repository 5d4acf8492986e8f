"""A model comes into a repository whole, or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["staged_model"]


@contextmanager
def staged_model(repository: Path, name: str) -> Iterator[Path]:
    """A repository of its own to write a model to, which moves into the real one where nothing was raised.

    It lies inside of that one, so that moving is renaming, also where a repository is a volume. Its name begins with a dot: no
    model is called like that.

    Args:
        repository: that the model is for; made when absent.
        name: the model's; the caller writes the folder of this name.
    """
    repository.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=repository) as folder:
        yield Path(folder)
        (Path(folder) / name).rename(repository / name)
