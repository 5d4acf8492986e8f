"""Keeping what lm-evaluation-harness and its libraries log, warn and draw off the terminal."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import warnings
from collections.abc import Iterator

__all__ = ["quiet_harness"]

_LOGGERS = ("lm_eval", "lm-eval", "datasets", "huggingface_hub", "httpx", "fsspec", "filelock")


@contextlib.contextmanager
def quiet_harness() -> Iterator[None]:
    """Around a call of the harness. Errors come out as they are."""
    import datasets

    levels = {name: logging.getLogger(name).level for name in _LOGGERS}
    drawn = datasets.is_progress_bar_enabled()
    before = os.environ.get("TQDM_DISABLE")
    nowhere = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        warnings.simplefilter("ignore")
        datasets.disable_progress_bars()
        os.environ["TQDM_DISABLE"] = "1"
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)
            if before is None:
                os.environ.pop("TQDM_DISABLE")
            else:
                os.environ["TQDM_DISABLE"] = before
            if drawn:
                datasets.enable_progress_bars()
