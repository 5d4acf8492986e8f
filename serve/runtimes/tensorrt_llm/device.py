"""A CUDA device with one stream of its own for a rank's steps."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from roundhouse.errors import SetupError

__all__ = ["CudaDevice"]


class CudaDevice:
    """A :class:`~.session.Device`.

    On the default stream TensorRT waits for the whole device, so the steps have another. It becomes torch's current stream in
    the thread that makes the device: whatever looks at a step's tensors there is in order with it.

    Args:
        rank: of the engine; it takes the GPU of its number, of those that the process may use.

    Raises:
        SetupError: torch sees no GPU here, or too few.
    """

    def __init__(self, rank: int) -> None:
        if not torch.cuda.is_available():
            raise SetupError("torch sees no GPU here", hint="A TensorRT-LLM engine runs in NVIDIA's container, on its GPU.")
        if rank >= (seen := torch.cuda.device_count()):  # its pool was sized for a GPU of its own
            raise SetupError(
                f"rank {rank} has no GPU: torch sees {seen} here",
                hint="Each rank takes one; CUDA_VISIBLE_DEVICES may hide some.",
            )
        self.torch_device = torch.device("cuda", rank)
        torch.cuda.set_device(self.torch_device)
        self._stream = torch.cuda.Stream(self.torch_device)  # type: ignore[no-untyped-call]  # torch leaves it so
        torch.cuda.set_stream(self._stream)
        self.stream = int(self._stream.cuda_stream)

    def active(self) -> AbstractContextManager[None]:
        return cast(AbstractContextManager[None], torch.cuda.stream(self._stream))

    def put(self, array: npt.NDArray[Any]) -> torch.Tensor:
        pinned = torch.from_numpy(np.ascontiguousarray(array)).pin_memory()
        with self.active():
            return pinned.to(self.torch_device, non_blocking=True)

    def get(self, tensor: torch.Tensor) -> npt.NDArray[Any]:
        with self.active():
            copy: npt.NDArray[Any] = tensor.to("cpu").numpy()
        return copy

    def wait(self) -> None:
        self._stream.synchronize()
