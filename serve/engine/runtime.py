"""What the engine loop asks of a runtime: prepare a batch on the device, then run it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from .arrays import Float32Array
from .batch import StepBatch

if TYPE_CHECKING:
    import torch

    from roundhouse.plugins.guard import PageGuard

    from .stages import Stages

__all__ = ["EngineRuntime", "PreparedBatch", "Runtime"]


@dataclass(frozen=True)
class PreparedBatch:
    """A batch on the device: what the guard checks, and the only place that attention takes page numbers from.

    A runtime that needs them in another form computes it in :meth:`Runtime.forward`, after the guard,
    from ``page_table``. A copy made earlier would be read unchecked.
    """

    page_table: torch.Tensor
    """int32 [B, M], −1 where unused."""
    page_count: torch.Tensor
    """int32 [B]"""
    expected_tags: torch.Tensor
    """int32 [B, M]"""
    query_start: torch.Tensor
    """int32 [B + 1]: row b runs tokens ``query_start[b]:query_start[b + 1]`` of the packed ones."""
    context_len: torch.Tensor
    """int32 [B]: tokens of each row in the cache after this step, all of which attention reads."""


Prepared = TypeVar("Prepared", bound=PreparedBatch)


class Runtime(Protocol[Prepared]):
    """Runs batches of one loaded model. Keeps keys and values in pages; knows nothing of requests."""

    def prepare(self, batch: StepBatch) -> Prepared:
        """Put a batch's tables on the device. Reads and writes no page."""
        ...

    def forward(self, prepared: Prepared) -> Float32Array:
        """Run a batch that the guard let pass: write its keys and values into its pages, and attend to what pages hold.

        Returns:
            float32 [R, V]: logits of the batch's ``sample_rows``.
        """
        ...

    def page_bytes(self, page: int) -> npt.NDArray[np.uint8]:
        """uint8 [page_bytes]: what a page holds now, all its fields and layers. A copy where pages lie on a GPU."""
        ...


class EngineRuntime(Runtime[Any], Protocol):
    """A loaded engine, and what belongs to where its pages lie."""

    page_guard: PageGuard
    """Compares tags there."""
    page_tokens: int
    row_bytes: int
    """A page is ``uint8 [anything, page_tokens, row_bytes]``: rows of one token after those of another."""

    def write_page(self, page: int, content: npt.NDArray[np.uint8]) -> None:
        """Overwrite a page, uint8 [page_bytes]: for drills."""
        ...

    def clear_pages(self) -> None:
        """Zero every page: for drills."""
        ...

    def name_stages(self, stages: Stages) -> None:
        """Let ``stages`` hear what forward is made of, where that can be told. For profiles only: it makes steps slower."""
        ...
