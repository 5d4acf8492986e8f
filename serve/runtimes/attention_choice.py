"""Which attention a runtime gets."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Literal

from roundhouse.errors import SetupError

from .attention import Attention
from .native_attention import NativePagedAttention
from .torch_attention import TorchPagedAttention
from .torch_pages import KvPages

__all__ = ["create_attention"]

_log = logging.getLogger(__name__)


def create_attention(pages: KvPages, choice: Literal["auto", "native", "torch"], cache: Path) -> Attention:
    """The attention of a runtime.

    Args:
        pages: what it reads and writes.
        choice: ``native``, ``torch``, or ``auto``: native where it can be had, else torch, with the reason in the log.
        cache: folder for compiled kernels.

    Raises:
        SetupError: ``native`` was asked for and cannot be had.
    """
    if choice != "torch":
        try:
            return NativePagedAttention(pages, cache)
        except SetupError as error:
            if choice == "native":
                raise
            _log.warning("attention runs in plain torch, which is slow: %s", error.message)
    return TorchPagedAttention(pages)
