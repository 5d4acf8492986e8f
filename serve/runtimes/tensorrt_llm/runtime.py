"""The runtime of a TensorRT-LLM engine: rank 0, which has the scheduler, and through it all other ranks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roundhouse.plugins.guard import PageGuard

from ...engine.arrays import Float32Array
from ...engine.batch import StepBatch
from ...engine.stages import Stages
from .geometry import EngineGeometry
from .guard import RanksGuard
from .link import Begin, End, Forward, Link, Prepare
from .rank import PreparedStep, RankEngine
from .ranks import rank_parts
from .steps import check_chunks, make_step

__all__ = ["TensorRtRuntime", "begin"]


def begin(link: Link, pages: int) -> None:
    """Let all other ranks load, before rank 0 does; :class:`TensorRtRuntime` waits for them."""
    link.command(Begin(pages))


class TensorRtRuntime:
    """A :class:`roundhouse.serve.engine.runtime.Runtime`.

    Args:
        geometry: of the engine.
        own: rank 0.
        link: to the others, which load meanwhile: see :func:`begin`.
    """

    def __init__(self, geometry: EngineGeometry, own: RankEngine, link: Link) -> None:
        self._own = own
        self._link = link
        self._takes_chunks = geometry.takes_chunks
        self._gives_logits = next(part.rank for part in rank_parts(geometry) if part.is_last)
        self._steps = 0
        self.page_guard: PageGuard = RanksGuard(own, link)
        self.page_tokens = geometry.page_tokens
        self.row_bytes = geometry.head_dim * geometry.kv_element_bytes
        link.exchange(link.rank)

    def prepare(self, batch: StepBatch) -> PreparedStep:
        self._steps += 1
        step = make_step(batch, self._steps)
        if not self._takes_chunks:
            check_chunks(step)
        self._link.command(Prepare(step))
        return self._own.prepare(step)

    def forward(self, prepared: PreparedStep) -> Float32Array:
        self._link.command(Forward(prepared.step.number))
        logits = self._own.forward(prepared)
        if logits is None:
            received = self._link.receive(self._gives_logits)
            logits = np.asarray(received, dtype=np.float32)
        return logits

    def page_bytes(self, page: int) -> npt.NDArray[np.uint8]:
        """As rank 0 has it; a copy, for pages lie on the GPU."""
        return self._own.pool.read(page)

    def write_page(self, page: int, content: npt.NDArray[np.uint8]) -> None:
        self._own.pool.write(page, content)

    def clear_pages(self) -> None:
        self._own.pool.clear()

    def name_stages(self, stages: Stages) -> None:
        """An engine is one piece: nothing inside of it can be told."""

    def close(self) -> None:
        """Let the other ranks end."""
        self._link.command(End())
