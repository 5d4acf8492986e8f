"""The torch runtime: a transformers model, its pages, and batches run through both."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch

from roundhouse.build.kv_scales import KvScaleReport
from roundhouse.build.models.shape import ModelShape
from roundhouse.build.planner.kv_layout import KvLayout, layout_for

from ..engine.arrays import Float32Array
from ..engine.batch import StepBatch
from .attention_choice import create_attention
from .torch_batch import TorchBatch, prepare_batch
from .torch_model import load_model, weight_bytes
from .torch_pages import KvPages

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
        kernels: folder for compiled kernels.
        attention: native kernels, plain torch, or whichever can be had.
        precision: ``reference`` runs float32 weights on float32 pages, and attends in plain torch.

    Raises:
        ModelError: the checkpoint cannot be read or does not fit its config.
        SetupError: native attention was asked for and cannot be had.
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
        kernels: Path,
        attention: Literal["auto", "native", "torch"] = "auto",
        precision: Literal["engine", "reference"] = "engine",
    ) -> None:
        reference = precision == "reference"
        self._model = load_model(checkpoint, dtype=torch.float32 if reference else torch.bfloat16, keep_packed=not reference)
        (group,) = (layout_for(shape, "float32") if reference else layout).groups
        self.pages = KvPages(
            group, pages=pages, page_tokens=page_tokens, heads=shape.kv_heads, scales={"k": scales.k, "v": scales.v}
        )
        self.attention = create_attention(self.pages, "torch" if reference else attention, kernels)

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights held in memory, measured."""
        return weight_bytes(self._model)

    def prepare(self, batch: StepBatch) -> TorchBatch:
        return prepare_batch(batch)

    @torch.inference_mode()
    def forward(self, prepared: TorchBatch) -> Float32Array:
        output = self._model(
            input_ids=prepared.token_ids,
            position_ids=prepared.positions,
            use_cache=False,
            logits_to_keep=prepared.sample_rows,
            paged=self.attention.begin(prepared),
        )
        logits: Float32Array = output.logits[0].float().numpy()
        return logits
