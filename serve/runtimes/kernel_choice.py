"""Native kernels or plain torch: which a runtime gets."""

from __future__ import annotations

import ctypes
import logging
from pathlib import Path
from typing import Literal

from roundhouse.errors import SetupError
from roundhouse.plugins.native_guard import CpuGuard
from roundhouse.plugins.native_interface import load_kernels
from roundhouse.plugins.page_guard_op import use_kernels

from .attention import Attention
from .native_attention import NativePagedAttention
from .torch_attention import TorchPagedAttention
from .torch_pages import KvPages

__all__ = ["KernelChoice", "create_attention", "find_kernels"]

_log = logging.getLogger(__name__)

KernelChoice = Literal["auto", "native", "step", "torch"]
"""``native``: they must be there. ``auto``: native where they can be had, else torch, with the reason in the log.

``step``: they compute the whole step, not only what transformers' model leaves to them.
"""


def find_kernels(choice: KernelChoice, cache: Path) -> ctypes.CDLL | None:
    """The native kernels, compiled first where ``cache`` does not have them; None where plain torch is to run.

    From then on the page guard of this process is native, too: it says the same whichever way it runs.

    Raises:
        SetupError: ``native`` or ``step`` was asked for and cannot be had.
    """
    if choice == "torch":
        return None
    try:
        kernels = load_kernels(cache)
    except SetupError as error:
        if choice != "auto":
            raise
        _log.warning("attention and linears run in plain torch, which is slow: %s. %s", error.message, error.hint or "")
        return None
    use_kernels("cpu", CpuGuard(kernels))
    return kernels


def create_attention(pages: KvPages, choice: KernelChoice, kernels: ctypes.CDLL | None) -> Attention:
    """The attention of a runtime on its pages.

    Raises:
        SetupError: ``native`` or ``step`` was asked for, and the kernels do not take these pages.
    """
    if kernels is not None:
        try:
            return NativePagedAttention(pages, kernels)
        except SetupError as error:
            if choice != "auto":
                raise
            _log.warning("attention runs in plain torch, which is slow: %s", error.message)
    return TorchPagedAttention(pages)
