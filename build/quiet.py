"""Keeping third-party chatter off the terminal while our own progress is shown."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator

__all__ = ["quiet_libraries"]


@contextlib.contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Silence transformers' progress bars and warnings."""
    from transformers.utils import logging as transformers_logging

    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        transformers_logging.enable_progress_bar()


@contextlib.contextmanager
def quiet_libraries() -> Iterator[None]:
    """Silence what transformers and ModelOpt log, warn and print. Not for code that shows our own progress."""
    nowhere = io.StringIO()
    with (
        warnings.catch_warnings(),
        _quiet_transformers(),
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        warnings.simplefilter("ignore")
        yield
