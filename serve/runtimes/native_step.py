"""A loaded model as one native step: which models fit, and their tensors as the step takes them."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from roundhouse.errors import SetupError
from roundhouse.plugins.native_attention import NativeAttention
from roundhouse.plugins.native_linear import takes_int8_inputs
from roundhouse.plugins.native_step import NativeStep, StepLayer, StepProjection, StepWeights

from .native_linears import NativeBf16Linear, NativeInt4Linear

__all__ = ["native_step"]

_ARCHITECTURES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_WIDTHS = 16
"""Rows of activations are multiples of this."""


def native_step(
    model: PreTrainedModel, attention: NativeAttention, kernels: ctypes.CDLL, *, positions: int, int8_inputs: bool
) -> NativeStep:
    """Make the step of a loaded model; it shares the model's weights.

    Args:
        model: with native linears, as :func:`.torch_model.load_model` makes it.
        attention: on the pages of the model.
        kernels: the compiled kernels.
        positions: tokens of the longest request.
        int8_inputs: round the inputs of INT4 linears to int8.

    Raises:
        SetupError: the model is not of the kind that the step computes; says why.
        ServeError: its tensors do not fit each other.
    """
    config: Any = model.config
    architecture = type(model).__name__
    if architecture not in _ARCHITECTURES:
        raise SetupError(f"the native step runs {', '.join(_ARCHITECTURES)}, not {architecture}")
    if config.hidden_act != "silu":
        raise SetupError(f"the native step computes silu, not {config.hidden_act}")
    if config.hidden_size % _WIDTHS or config.intermediate_size % _WIDTHS:
        widths = f"{config.hidden_size} and {config.intermediate_size}"
        raise SetupError(f"the native step takes widths that are multiples of {_WIDTHS}, not {widths}")
    inner: Any = model.model
    cosines, sines = _rotation(inner.rotary_emb, min(positions, config.max_position_embeddings), attention.geometry.head_dim)
    make = _Projections(int8_inputs=int8_inputs)
    weights = StepWeights(
        layers=[_layer(layer, make) for layer in inner.layers],
        embedding=inner.embed_tokens.weight,
        norm=inner.norm.weight,
        head=make("lm_head", model.get_output_embeddings()),
        cosines=cosines,
        sines=sines,
        heads=config.num_attention_heads,
        epsilon=inner.norm.variance_epsilon,
        scaling=inner.layers[0].self_attn.scaling,
        int8_inputs=int8_inputs,
    )
    return NativeStep(kernels, attention, weights)


class _Projections:
    """Linears as projections. Input scales that are the same become one tensor: their inputs are prepared once."""

    def __init__(self, *, int8_inputs: bool) -> None:
        self._int8_inputs = int8_inputs
        self._last_scale: torch.Tensor | None = None

    def __call__(self, name: str, module: nn.Module | None) -> StepProjection:
        if isinstance(module, NativeInt4Linear):
            if self._int8_inputs and not takes_int8_inputs(module.group):
                raise SetupError(f"{name}: int8 activations need groups of a multiple of 32, not {module.group}")
            return StepProjection(module.matrix, self._shared(module.pre_quant_scale), module.bias)
        if isinstance(module, NativeBf16Linear):
            return StepProjection(module.matrix, None, module.bias)
        raise SetupError(f"torch multiplies {name}: there is no native kernel for it, or none that is faster on this CPU")

    def _shared(self, scale: torch.Tensor | None) -> torch.Tensor | None:
        if scale is None or self._last_scale is None or not torch.equal(scale, self._last_scale):
            self._last_scale = scale
        return self._last_scale


def _layer(layer: Any, make: _Projections) -> StepLayer:
    attention, mlp = layer.self_attn, layer.mlp
    norms = (getattr(attention, name, None) for name in ("q_norm", "k_norm"))
    query_norm, key_norm = (None if norm is None else norm.weight for norm in norms)
    return StepLayer(
        attention_norm=layer.input_layernorm.weight,
        mlp_norm=layer.post_attention_layernorm.weight,
        query=make("q_proj", attention.q_proj),
        key=make("k_proj", attention.k_proj),
        value=make("v_proj", attention.v_proj),
        output=make("o_proj", attention.o_proj),
        gate=make("gate_proj", mlp.gate_proj),
        up=make("up_proj", mlp.up_proj),
        down=make("down_proj", mlp.down_proj),
        query_norm=query_norm,
        key_norm=key_norm,
    )


def _rotation(rotary: nn.Module, positions: int, head_dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """float32 [positions, head_dim / 2] each: what the model's own module computes, whose second half repeats the first."""
    with torch.inference_mode():
        tables = rotary(torch.empty(1, dtype=torch.float32), torch.arange(positions)[None])
    cosines, sines = (table[0] for table in tables)
    half = head_dim // 2
    if cosines.shape[1] != head_dim or not torch.equal(cosines[:, :half], cosines[:, half:]):
        raise SetupError("the native step rotates whole heads, whose halves belong together")
    return cosines[:, :half].contiguous(), sines[:, :half].contiguous()
