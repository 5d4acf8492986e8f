"""A written checkpoint as a plain transformers model on dequantized weights: what the engine is judged by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundhouse.errors import VerifyError

from .events import OnStep
from .kv_scales import KvScaleReport
from .quiet import quiet_libraries
from .weights import Tensors, dequantize, quantized_linear

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

__all__ = ["dequantized_state", "logits", "plain_model"]

_FP8_KV = "roundhouse_fp8_kv"
_FP8_MAX = 448.0


def dequantized_state(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A bf16 state dict with every quantized linear dequantized, its input scale folded in."""
    import torch

    state = {}
    for name in tensors:
        module, _, part = name.rpartition(".")
        if part == "weight" and f"{module}.weight_scale" in tensors:
            state[name] = dequantize(quantized_linear(tensors, module)).to(torch.bfloat16)
        elif not part.endswith("_scale"):
            state[name] = tensors[name].to(torch.bfloat16)
    return state


def plain_model(folder: Path, kv_scales: KvScaleReport, arithmetic: torch.dtype) -> PreTrainedModel:
    """Load a written checkpoint into unchanged transformers code: weights as bf16, computing in ``arithmetic``.

    With calibrated or absent FP8 KV scales, keys and values pass through FP8 as the engine's cache
    stores them.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with quiet_libraries():
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        if hasattr(config, "quantization_config"):
            del config.quantization_config
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    # Tied heads have no tensor of their own; everything else must be there.
    missing, unexpected = model.load_state_dict(dequantized_state(Tensors(folder)), strict=False)
    untied = [name for name in missing if not (name == "lm_head.weight" and config.tie_word_embeddings)]
    if untied or unexpected:
        raise VerifyError(f"checkpoint and architecture differ: missing {untied}, unexpected {unexpected}")
    model.tie_weights()
    model = model.to(arithmetic)
    if kv_scales.state != "not used":
        _simulate_fp8_kv(model, kv_scales)
    return model


def logits(model: PreTrainedModel, windows: torch.Tensor, on_step: OnStep) -> torch.Tensor:
    """Teacher-forced logits: int64 [W, T] → float32 [W, T, V], one window at a time; ``on_step`` hears of each."""
    import torch

    out = torch.empty(*windows.shape, model.config.vocab_size)
    with torch.no_grad():
        for done, (window, rows) in enumerate(zip(windows, out, strict=True), start=1):
            rows.copy_(model(input_ids=window[None], use_cache=False).logits[0])
            on_step(done, len(windows))
    return out


def _simulate_fp8_kv(model: PreTrainedModel, kv_scales: KvScaleReport) -> None:
    from transformers import AttentionInterface

    AttentionInterface.register(_FP8_KV, _attention_through_fp8)
    model.set_attn_implementation(_FP8_KV)
    for layer, block in enumerate(model.model.layers):
        block.self_attn.kv_cache_scales = (
            kv_scales.k[layer] if kv_scales.k else 1.0,
            kv_scales.v[layer] if kv_scales.v else 1.0,
        )


def _attention_through_fp8(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, **options: Any
) -> Any:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    k_scale, v_scale = module.kv_cache_scales
    return ALL_ATTENTION_FUNCTIONS["sdpa"](
        module, query, _through_fp8(key, k_scale), _through_fp8(value, v_scale), mask, **options
    )


def _through_fp8(rows: torch.Tensor, scale: float) -> torch.Tensor:
    import torch

    stored = (rows.float() / scale).clamp(-_FP8_MAX, _FP8_MAX).to(torch.float8_e4m3fn)
    return (stored.float() * scale).to(rows.dtype)
