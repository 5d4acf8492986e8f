"""The torch runtime: a transformers model, its pages, and batches run through both."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

from roundhouse.build.kv_scales import KvScaleReport
from roundhouse.build.models.shape import ModelShape
from roundhouse.build.planner.kv_layout import DTYPE_BYTES, KvLayout, layout_for
from roundhouse.plugins.guard import PageGuard, TorchPageGuard
from roundhouse.plugins.native_step import NativeStep, StepSeconds

from ..engine.arrays import Float32Array
from ..engine.batch import StepBatch
from ..engine.stages import NO_STAGES, Stages
from .kernel_choice import KernelChoice, create_attention, find_kernels
from .native_attention import NativePagedAttention
from .native_step import native_step
from .torch_batch import TorchBatch, prepare_batch
from .torch_model import load_model, weight_bytes
from .torch_pages import KvPages
from .torch_stages import StagedAttention, name_stages

__all__ = ["TorchRuntime"]


class TorchRuntime:
    """Runs one checkpoint on the CPU.

    Args:
        checkpoint: folder with config.json and safetensors, plain or quantized.
        shape: the model's dimensions.
        layout: what a token leaves in the cache; one group. Ignored in the reference.
        scales: FP8 scales by layer.
        pages: pages of the pool.
        page_tokens: tokens a page holds.
        kernels: native or torch, for attention and linears, or ``step``.
        kernel_cache: folder for compiled kernels.
        max_seq_len: tokens of the longest request; None takes the model's.
        precision: ``reference`` runs float32 weights on float32 pages, and uses nothing but torch.

    Raises:
        ModelError: the checkpoint cannot be read or does not fit its config.
        SetupError: native kernels were asked for and cannot be had, or the native step and the model is not of its kind.
    """

    def __init__(
        self,
        checkpoint: Path,
        *,
        shape: ModelShape,
        layout: KvLayout,
        scales: KvScaleReport,
        pages: int,
        page_tokens: int,
        kernel_cache: Path,
        kernels: KernelChoice = "auto",
        precision: Literal["engine", "reference"] = "engine",
        max_seq_len: int | None = None,
    ) -> None:
        reference = precision == "reference"
        native = None if reference else find_kernels(kernels, kernel_cache)
        dtype = torch.float32 if reference else torch.bfloat16
        whole = kernels == "step"
        self._model = load_model(checkpoint, dtype=dtype, keep_packed=not reference, kernels=native, all_native=whole)
        (group,) = (layout_for(shape, "float32") if reference else layout).groups
        self.pages = KvPages(
            group, pages=pages, page_tokens=page_tokens, heads=shape.kv_heads, scales={"k": scales.k, "v": scales.v}
        )
        self.attention = create_attention(self.pages, kernels, native)
        self.page_guard: PageGuard = TorchPageGuard()
        self.page_tokens = page_tokens
        self.row_bytes = self.pages.heads * self.pages.head_dim * DTYPE_BYTES[self.pages.dtype]
        self.step: NativeStep | None = None
        """The whole step in native code; None where transformers' model runs, which is what the step must agree with."""
        if whole and native is not None and isinstance(self.attention, NativePagedAttention):
            positions = min(pages * page_tokens, max_seq_len or shape.max_positions)
            self.step = native_step(self._model, self.attention.pool, native, positions=positions, int8_inputs=False)
        self._stages = NO_STAGES

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights held in memory, measured."""
        return weight_bytes(self._model)

    def name_stages(self, stages: Stages) -> None:
        """Let ``stages`` hear of attention, linears and the head from now on. For profiles only: it makes steps slower."""
        self._stages = stages
        name_stages(self._model, stages)
        self.attention = StagedAttention(self.attention, stages)

    def prepare(self, batch: StepBatch) -> TorchBatch:
        return prepare_batch(batch)

    @torch.inference_mode()
    def forward(self, prepared: TorchBatch) -> Float32Array:
        if self.step is not None:
            return self._run_step(self.step, prepared)
        output = self._model(
            input_ids=prepared.token_ids,
            position_ids=prepared.positions,
            use_cache=False,
            logits_to_keep=prepared.sample_rows,
            paged=self.attention.begin(prepared),
        )
        logits: Float32Array = output.logits[0].float().numpy()
        return logits

    def _run_step(self, step: NativeStep, prepared: TorchBatch) -> Float32Array:
        seconds = None if self._stages is NO_STAGES else StepSeconds()
        tables = (prepared.page_table, prepared.query_start, prepared.context_len)
        logits: Float32Array = step.run(prepared.token_ids[0], *tables, prepared.sample_rows, seconds=seconds).numpy()
        if seconds is not None:
            self._stages.took("attention", seconds.attention)
            self._stages.took("linears", seconds.linears)
            self._stages.took("lm_head", seconds.lm_head)
        return logits

    def page_bytes(self, page: int) -> npt.NDArray[np.uint8]:
        content: npt.NDArray[np.uint8] = self.pages.bytes[page]
        return content

    def write_page(self, page: int, content: npt.NDArray[np.uint8]) -> None:
        self.pages.bytes[page] = content

    def clear_pages(self) -> None:
        self.pages.buffer.zero_()
