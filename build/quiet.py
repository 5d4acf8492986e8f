"""Keeping third-party chatter off the terminal while our own progress is shown."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator

__all__ = ["quiet_libraries", "quiet_transformers"]


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
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
def quiet_libraries() -> Iterator[io.StringIO]:
    """Silence transformers and ModelOpt, which print; what they printed can be read from the buffer."""
    captured = io.StringIO()
    with warnings.catch_warnings(), quiet_transformers(), contextlib.redirect_stdout(captured):
        warnings.simplefilter("ignore")
        with contextlib.redirect_stderr(captured):
            yield captured
