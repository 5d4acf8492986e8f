"""What the runtime asks of a loaded engine and of the GPU it runs on. Written from TensorRT-LLM's record, in our words."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy.typing as npt
import torch

__all__ = ["Device", "Session", "Workspace"]


class Session(Protocol):
    """An engine of one rank that is ready to run."""

    inputs: frozenset[str]
    """Names of the tensors that it takes."""
    outputs: frozenset[str]
    """Names of the tensors that it gives."""

    def run(self, inputs: Mapping[str, torch.Tensor], outputs: Mapping[str, torch.Tensor], stream: int) -> None:
        """Put one step on a stream, without waiting. The tensors must stay until the stream has passed it.

        Args:
            inputs: exactly those of :attr:`inputs`; which lie on the host and which on the device is upstream's to say.
            outputs: exactly those of :attr:`outputs`; written on the stream.
            stream: address of a ``cudaStream_t``.

        Raises:
            ServeError: a shape is outside of what the engine was built for, or it could not be enqueued.
        """
        ...


class Workspace(Protocol):
    """Memory in which ranks that share layers add up. It is there as long as this object."""

    tensor: torch.Tensor
    """The engine's input ``all_reduce_workspace``."""


class Device(Protocol):
    """One GPU, and the stream that everything of a step goes to: copies, the page check, the model."""

    torch_device: torch.device
    stream: int
    """Address of its ``cudaStream_t``."""

    def active(self) -> AbstractContextManager[None]:
        """Inside, torch puts its work on this device's stream."""
        ...

    def put(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """A copy of an array on the device, made on the stream."""
        ...

    def get(self, tensor: torch.Tensor) -> npt.NDArray[Any]:
        """A copy of a tensor on the host; waits for all that the stream was given before."""
        ...

    def wait(self) -> None:
        """Wait for all that the stream was given."""
        ...
