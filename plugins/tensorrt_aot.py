"""The page guard as an ahead-of-time plugin of TensorRT: the engine carries the kernel, and needs neither a library nor Python.

Written for ``tensorrt.plugin`` from TensorRT 10.9 on. The kernel is the PTX that ``native/CMakeLists.txt``
makes of ``native/cuda/page_guard.cu``.
"""

# `tensorrt.plugin` looks at the annotations of what is registered, and takes no strings: so nothing from __future__ here.

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundhouse.errors import SetupError

__all__ = ["KERNEL", "PLUGIN_ID", "GuardKernel", "read_kernel", "register_page_guard"]

KERNEL = "rh_page_guard_kernel"
PLUGIN_ID = "roundhouse::page_guard"
_IO_TYPES = ", ".join(["INT32"] * 5)
_BUILD_HINT = "docs/native.md says how page_guard.ptx is built."


@dataclass(frozen=True)
class GuardKernel:
    """The compiled kernel."""

    ptx: bytes
    threads: int
    """Of a block; a row of the batch is one block."""


def read_kernel(path: Path) -> GuardKernel:
    """Read the kernel's PTX.

    Raises:
        SetupError: the file cannot be read, or is not this kernel's.
    """
    try:
        ptx = path.read_bytes()
    except OSError as error:
        raise SetupError(f"{path}: {error.strerror}", hint=_BUILD_HINT) from None
    entry = re.search(rb"\.entry " + KERNEL.encode() + rb"\(.*?\)\s*\.maxntid (\d+)", ptx, re.DOTALL)
    if entry is None:
        raise SetupError(f"{path} does not hold the kernel {KERNEL}", hint=_BUILD_HINT)
    return GuardKernel(ptx, int(entry[1]))


@functools.cache
def register_page_guard(kernel: GuardKernel) -> Any:
    """Register the plugin with TensorRT; once for a process, which can have one kernel of this name.

    Returns:
        What makes the plugin of four network tensors, for ``network.add_plugin(…, aot=True)``.

    Raises:
        SetupError: there is no TensorRT, or it is older than 10.9.
    """
    try:
        import tensorrt.plugin as trtp
    except ImportError as error:
        raise SetupError(f"TensorRT cannot be imported: {error}", hint="Run this where TensorRT is installed.") from None
    if not hasattr(trtp, "aot_impl"):
        raise SetupError("this TensorRT has no ahead-of-time plugins", hint="They came with TensorRT 10.9.")
    _describe(kernel)
    return trtp.op.roundhouse.page_guard


def _describe(kernel: GuardKernel) -> None:
    """The plugin's three parts: its output, its types, its launch."""
    import tensorrt.plugin as trtp

    @trtp.register(PLUGIN_ID)  # type: ignore[untyped-decorator]
    def describe(
        page_table: trtp.TensorDesc, page_count: trtp.TensorDesc, expected_tags: trtp.TensorDesc, page_tags: trtp.TensorDesc
    ) -> trtp.TensorDesc:
        return page_count.like()

    @trtp.autotune(PLUGIN_ID)  # type: ignore[untyped-decorator]
    def types(
        page_table: trtp.TensorDesc,
        page_count: trtp.TensorDesc,
        expected_tags: trtp.TensorDesc,
        page_tags: trtp.TensorDesc,
        outputs: tuple[trtp.TensorDesc],
    ) -> list[trtp.AutoTuneCombination]:
        return [trtp.AutoTuneCombination(_IO_TYPES, "LINEAR")]

    # The kernel is passed the inputs' addresses, then the numbers, then the output's address.
    @trtp.aot_impl(PLUGIN_ID)  # type: ignore[untyped-decorator]
    def launch(
        page_table: trtp.TensorDesc,
        page_count: trtp.TensorDesc,
        expected_tags: trtp.TensorDesc,
        page_tags: trtp.TensorDesc,
        outputs: tuple[trtp.TensorDesc],
        tactic: int,
    ) -> tuple[str, bytes, trtp.KernelLaunchParams, trtp.SymIntExprs]:
        rows, columns = page_table.shape_expr[0], page_table.shape_expr[1]
        numbers = trtp.SymIntExprs(2)
        numbers[0] = trtp.SymInt32(columns)
        numbers[1] = trtp.SymInt32(page_tags.shape_expr[0])
        return KERNEL, kernel.ptx, trtp.KernelLaunchParams(grid_x=rows, block_x=kernel.threads), numbers
