"""The guard's engine at run time: TensorRT compares a batch's tables on a CUDA stream, before the model's step runs there.

Names of TensorRT's Python API are those of its 10.14 and 11.1 sources.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from roundhouse.errors import ServeError

from .tensorrt_guard import INPUTS, OUTPUT, GuardLimits, load_plugin, load_tensorrt
from .torch_guard import check_tables, torch_page_guard

__all__ = ["ALIGNMENT", "GuardEngine", "placed"]

ALIGNMENT = 256
"""Bytes: TensorRT takes tensors at multiples of it. torch allocates so; a slice may begin anywhere."""
_REFUSED = "TensorRT's log, above, says why."


class GuardEngine:
    """An engine of :func:`roundhouse.plugins.tensorrt_guard.build_guard_engine`, loaded on the current GPU.

    It holds one batch at a time: neither several threads nor several streams may use it at once.

    Args:
        engine: the serialized engine, of this version of TensorRT and this kind of GPU.
        limits: those it was built with.
        plugin: what it was built from. A library is loaded unless the plugin is here already; with
            ``page_guard.ptx`` the engine carries the kernel, and no file is read.

    Raises:
        SetupError: TensorRT is not here, or the plugin cannot be loaded.
        ServeError: TensorRT does not take the engine.
    """

    def __init__(self, engine: bytes, limits: GuardLimits, plugin: Path) -> None:
        trt = load_tensorrt()
        if plugin.suffix != ".ptx":
            load_plugin(trt, plugin)
        loaded = trt.Runtime(trt.Logger(trt.Logger.WARNING)).deserialize_cuda_engine(engine)
        context = None if loaded is None else loaded.create_execution_context()
        if context is None:
            hint = f"{_REFUSED} An engine runs on the TensorRT and the kind of GPU that it was built with."
            raise ServeError("TensorRT does not take the page guard's engine", hint=hint)
        self._context: Any = context  # keeps the engine, its runtime and the logger alive
        self._limits = limits

    def __call__(
        self, page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: torch.Tensor
    ) -> torch.Tensor:
        """Compare, on torch's current stream, without waiting; any :class:`roundhouse.plugins.native_guard.FirstBad`.

        Tables with gaps between their rows, or at an address that TensorRT does not take, are copied first. Where a size
        is 0 torch answers: an engine's sizes begin at 1.

        On the default stream TensorRT waits for the device: give the step a stream of its own (``torch.cuda.stream``).

        Raises:
            ServeError: as :meth:`enqueue`, or the tables are not on a GPU.
        """
        tables = (page_table, page_count, expected_tags, page_tags)
        check_tables(*tables)
        if any(each.numel() == 0 for each in tables):
            return torch_page_guard(*tables)
        if page_table.device.type != "cuda":
            raise ServeError(f"this page guard takes tables on cuda, not on {page_table.device}")
        first_bad = page_count.new_empty(len(page_count))
        with torch.cuda.device(page_table.device):
            stream = torch.cuda.current_stream().cuda_stream
            self.enqueue(*(placed(each) for each in tables), first_bad=first_bad, stream=stream)
        return first_bad

    def enqueue(
        self,
        page_table: torch.Tensor,
        page_count: torch.Tensor,
        expected_tags: torch.Tensor,
        page_tags: torch.Tensor,
        *,
        first_bad: torch.Tensor,
        stream: int,
    ) -> None:
        """Put the comparison on a stream. The tensors must stay as they are until the stream has passed it.

        Args:
            page_table: int32 [B, M] on the engine's GPU, as :func:`placed` gives it; so are the others.
            page_count: int32 [B].
            expected_tags: int32 [B, M].
            page_tags: int32 [P].
            first_bad: int32 [B], written on the stream: the first bad column of each row, or −1.
            stream: address of a ``cudaStream_t``.

        Raises:
            ServeError: the tensors do not fit each other or the engine's limits, or TensorRT refused.
        """
        tables = (page_table, page_count, expected_tags, page_tags)
        check_tables(*tables)
        for name, table in zip(INPUTS, tables, strict=True):
            self._check_size(name, table)
        if first_bad.dtype != torch.int32 or first_bad.shape != page_count.shape or first_bad.device != page_table.device:
            raise ServeError("the page guard's answer must be an int32 tensor, a number for each row, beside the tables")
        tensors = dict(zip((*INPUTS, OUTPUT), (*tables, first_bad), strict=True))
        for name, tensor in tensors.items():
            if not _is_placed(tensor):
                raise ServeError(f"{name} has gaps, or does not lie at a multiple of {ALIGNMENT} bytes")
            if name != OUTPUT:
                _taken(self._context.set_input_shape(name, tuple(tensor.shape)), f"the shape of {name}")
            _taken(self._context.set_tensor_address(name, tensor.data_ptr()), f"the address of {name}")
        _taken(self._context.execute_async_v3(stream), "the page guard's launch")

    def _check_size(self, name: str, table: torch.Tensor) -> None:
        largest = self._limits.shape(INPUTS[name])
        if not all(1 <= size <= most for size, most in zip(table.shape, largest, strict=True)):
            raise ServeError(
                f"{name} is {_sizes(table.shape)}, and the page guard's engine takes 1 to {_sizes(largest)}",
                hint="Build it again, with limits that the page pool and the largest batch stay within.",
            )


def placed(table: torch.Tensor) -> torch.Tensor:
    """A table on a GPU as TensorRT takes it: without gaps, at a multiple of :data:`ALIGNMENT` bytes; copied if it must be."""
    return table if _is_placed(table) else table.clone(memory_format=torch.contiguous_format)


def _is_placed(table: torch.Tensor) -> bool:
    return table.is_contiguous() and table.data_ptr() % ALIGNMENT == 0


def _sizes(shape: tuple[int, ...]) -> str:
    return " × ".join(f"{size:,}" for size in shape)


def _taken(answer: bool, what: str) -> None:
    if not answer:
        raise ServeError(f"TensorRT refused {what}", hint=_REFUSED)
