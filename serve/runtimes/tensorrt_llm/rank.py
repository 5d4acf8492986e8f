"""One rank of an engine: its pages, its tables and its session; and the life of a rank that does what rank 0 says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from roundhouse.build.trtllm.upstream import upstream
from roundhouse.errors import ServeError
from roundhouse.plugins.native_guard import FirstBad

from ...engine.arrays import Float32Array, Int32Array
from ...engine.runtime import PreparedBatch
from .geometry import EngineGeometry
from .inputs import StepTensors
from .link import Begin, Check, Command, End, Forward, Link, Prepare
from .pool import KvPool
from .ranks import RankPart
from .session import Device, Session, Workspace
from .steps import Step
from .verdict import worst

__all__ = ["PreparedStep", "RankEngine", "follow"]


@dataclass(frozen=True)
class PreparedStep(PreparedBatch):
    """A step's tables on the rank's device."""

    step: Step


class RankEngine:
    """Runs one rank's part of every step.

    Args:
        geometry: of the engine.
        part: of this rank.
        session: its engine, loaded.
        device: what it runs on.
        pages: of its pool.
        guard: compares tags on the device's stream.
        workspace: where it adds up with ranks that share its layers.

    Raises:
        ServeError: the engine has tensors that are not known here, or the pages do not fit.
    """

    def __init__(
        self,
        geometry: EngineGeometry,
        part: RankPart,
        *,
        session: Session,
        device: Device,
        pages: int,
        guard: FirstBad,
        workspace: Workspace | None = None,
    ) -> None:
        _require_known(session)
        self.part = part
        self.pool = KvPool(geometry, part, pages=pages, device=device)
        self._vocab = geometry.pretrained_config.vocab_size
        self._session = session
        self._device = device
        self._guard = guard
        self._workspace = workspace
        sums = None if workspace is None else workspace.tensor
        self._tensors = StepTensors(geometry, part, pool=self.pool, device=device, workspace=sums)

    def prepare(self, step: Step) -> PreparedStep:
        """Put a step's tables on the device. Reads and writes no page."""
        put = self._device.put
        return PreparedStep(
            page_table=put(step.page_table),
            page_count=put(step.page_count),
            expected_tags=put(step.expected_tags),
            query_start=put(step.query_start),
            context_len=put(step.context_len),
            step=step,
        )

    def first_bad(
        self, page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: Int32Array
    ) -> Int32Array:
        """Compare on the stream that the model will run on, and wait for the answer: int32 [B], the first bad column or −1."""
        tags = self._device.put(page_tags)
        with self._device.active():
            answer = self._guard(page_table, page_count, expected_tags, tags)
        found: Int32Array = self._device.get(answer)
        return found

    def forward(self, prepared: PreparedStep) -> Float32Array | None:
        """Run a step whose tables were checked; waits for its end.

        Returns:
            float32 [R, V] on the ranks that give logits.

        Raises:
            ServeError: the engine takes no such step.
        """
        step = prepared.step
        tensors = self._tensors.inputs(step, prepared.page_table)
        outputs = self._tensors.outputs(step)
        inputs = {name: tensors[name] for name in self._session.inputs}
        self._session.run(inputs, {name: outputs[name] for name in self._session.outputs}, self._device.stream)
        if not self.part.is_last:
            self._device.wait()
            return None
        rows = np.argsort(step.order)[step.sampled]
        with self._device.active():
            logits = outputs["logits"][self._device.put(rows), : self._vocab].float()
        on_host: Float32Array = self._device.get(logits)
        return on_host


def follow(link: Link, load: Callable[[int], RankEngine]) -> None:
    """Be a rank other than 0: hear what is done next and do it, until there is nothing more.

    Args:
        link: to the other ranks.
        load: loads this rank, with so many pages.

    Raises:
        ServeError: a step is to run that was not prepared, or whose pages are not right.
    """
    begin = link.command()
    if not isinstance(begin, Begin):
        return
    engine = load(begin.pages)
    link.exchange(link.rank)
    prepared: PreparedStep | None = None
    verdict: Int32Array | None = None
    while True:
        command: Command = link.command()
        if isinstance(command, Prepare):
            prepared, verdict = engine.prepare(command.step), None
        elif isinstance(command, Check) and prepared is not None:
            tables = prepared.page_table, prepared.page_count, prepared.expected_tags
            verdict = worst(link.exchange(engine.first_bad(*tables, command.page_tags)))
        elif isinstance(command, Forward):
            logits = engine.forward(_checked(prepared, verdict, command.step))
            if logits is not None and engine.part.tp_rank == 0:
                link.send(logits, 0)
        elif isinstance(command, End):
            return
        else:
            raise ServeError(f"rank {link.rank} heard {type(command).__name__} out of turn", hint="Restart the engine process.")


def _checked(prepared: PreparedStep | None, verdict: Int32Array | None, number: int) -> PreparedStep:
    if prepared is None or prepared.step.number != number:
        raise ServeError(f"step {number} is to run and was not prepared on this rank", hint="Restart the engine process.")
    if verdict is not None and (verdict >= 0).any():
        raise ServeError(f"step {number} is to run although a page of it is not right", hint="Restart the engine process.")
    return prepared


def _require_known(session: Session) -> None:
    """Steps have every tensor that is recorded of upstream's engines; which of them a network uses differs."""
    record = upstream().engine_inputs
    unknown = sorted((session.inputs - record.inputs.keys()) | (session.outputs - record.outputs.keys()))
    if unknown:
        raise ServeError(
            f"the engine has tensors that this version does not know: {', '.join(unknown)}",
            hint="Build it again without the target_options that add them.",
        )
