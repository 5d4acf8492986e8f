"""The native page guard on torch's tensors: the CPU's from the kernels compiled on demand, CUDA's from CMake's library."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from roundhouse.errors import ServeError, SetupError

from .native_interface import GuardTables
from .torch_guard import check_tables

if TYPE_CHECKING:
    import torch

__all__ = ["CpuGuard", "CudaGuard", "FirstBad", "load_cuda_guard"]


class FirstBad(Protocol):
    """The comparison, as :func:`roundhouse.plugins.torch_guard.torch_page_guard` describes it."""

    def __call__(
        self, page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: torch.Tensor
    ) -> torch.Tensor:
        """int32 [B]: the first bad column of each row, or −1."""
        ...


class CpuGuard:
    """Tables on the CPU.

    Args:
        kernels: from :func:`roundhouse.plugins.native_interface.load_kernels`.
    """

    def __init__(self, kernels: ctypes.CDLL) -> None:
        self._guard = kernels.rh_page_guard

    def __call__(
        self, page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: torch.Tensor
    ) -> torch.Tensor:
        """Compare. Tables with gaps between their rows are copied first.

        Raises:
            ServeError: the tables do not fit each other, or are not on the CPU.
        """
        tables = _contiguous("cpu", page_table, page_count, expected_tags, page_tags)
        first_bad = page_count.new_empty(len(page_count))
        code = self._guard(ctypes.byref(_described(*tables)), first_bad.data_ptr())
        if code:
            raise ServeError(f"the page guard refused tables of {tuple(page_table.shape)} with code {code}")
        return first_bad


class CudaGuard:
    """Tables on a GPU: one launch on torch's current stream, and no waiting.

    Args:
        library: from :func:`load_cuda_guard`.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._guard = library.rh_page_guard_cuda

    def __call__(
        self, page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: torch.Tensor
    ) -> torch.Tensor:
        """Compare. Tables with gaps between their rows are copied first.

        Raises:
            ServeError: the tables do not fit each other or are not on a GPU, or the launch failed.
        """
        import torch

        tables = _contiguous("cuda", page_table, page_count, expected_tags, page_tags)
        first_bad = page_count.new_empty(len(page_count))
        with torch.cuda.device(page_table.device):
            stream = torch.cuda.current_stream().cuda_stream
            code = self._guard(ctypes.byref(_described(*tables)), first_bad.data_ptr(), stream)
        if code:
            raise ServeError(f"the page guard could not be launched: CUDA error {code}")
        return first_bad


def load_cuda_guard(path: Path) -> ctypes.CDLL:
    """Load the library that ``native/CMakeLists.txt`` builds from ``native/cuda/``.

    Raises:
        SetupError: it cannot be loaded here.
    """
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        hint = "docs/native.md says how it is built."
        raise SetupError(f"the CUDA page guard cannot be loaded: {error}", hint=hint) from None
    library.rh_page_guard_cuda.argtypes = [ctypes.c_void_p] * 3
    library.rh_page_guard_cuda.restype = ctypes.c_int32
    return library


def _contiguous(device: str, *tables: torch.Tensor) -> tuple[torch.Tensor, ...]:
    check_tables(*tables)
    if tables[0].device.type != device:
        raise ServeError(f"this page guard takes tables on {device}, not on {tables[0].device}")
    return tuple(each.contiguous() for each in tables)


def _described(
    page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: torch.Tensor
) -> GuardTables:
    pointers = (each.data_ptr() for each in (page_table, page_count, expected_tags, page_tags))
    return GuardTables(*pointers, *page_table.shape, len(page_tags))
