"""A checkpoint folder → a transformers model that runs on pages; the model's own code is unchanged."""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from roundhouse.build.hardware import this_machine
from roundhouse.build.weights import QuantizedLinear, Tensors, dequantize, quantized_linear
from roundhouse.errors import ModelError

from .attention import ATTENTION, register
from .native_linears import NativeInt4Linear, use_native_bf16
from .torch_linears import Int4Linear, torch_int4_linear

__all__ = ["load_model", "weight_bytes"]

_HEAD = "lm_head.weight"
_REBUILD_HINT = "Build the engine again; if that does not help, this model is not one that the torch target runs."


def load_model(
    folder: Path,
    *,
    dtype: torch.dtype,
    keep_packed: bool = True,
    kernels: ctypes.CDLL | None = None,
    all_native: bool = False,
) -> PreTrainedModel:
    """Load a plain or quantized checkpoint.

    Args:
        folder: config.json and safetensors, as ModelOpt exports them or as transformers saves them.
        dtype: of everything that is not INT4: bfloat16, or float32 for the reference.
        keep_packed: keep INT4 weights packed (bfloat16 only); otherwise they are dequantized.
        kernels: for linears in bfloat16; None runs them in plain torch.
        all_native: run them in none, even where torch is better at them.

    Raises:
        ModelError: the tensors do not fit the model; each one is named.
    """
    register()
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # quantized modules are put in below, not by transformers
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=ATTENTION)
    state = _take_tensors(model, Tensors(folder), dtype, keep_packed, kernels)
    if config.tie_word_embeddings:
        state.pop(_HEAD, None)
    unexpected = _assign(model, state)
    if config.tie_word_embeddings:
        model.get_output_embeddings().weight = model.get_input_embeddings().weight
    _rebuild_rotary(model)
    _require_complete(model, unexpected, folder)
    if kernels is not None:
        use_native_bf16(model, kernels, head_only=this_machine().native_bf16 and not all_native)
    return model.eval().requires_grad_(False)


def weight_bytes(model: nn.Module) -> int:
    """Bytes of all weights that a model holds, tied ones once. Rotary tables are not weights."""
    held = {tensor.data_ptr(): tensor.nbytes for tensor in model.state_dict().values()}
    return sum(held.values())


def _take_tensors(
    model: nn.Module, tensors: Tensors, dtype: torch.dtype, keep_packed: bool, kernels: ctypes.CDLL | None
) -> dict[str, torch.Tensor]:
    """Put packed linears into the model, and return plain weights for everything else.

    Scales are left out: weights' are used up here, and KV-cache scales belong to the pages.
    """
    state = {}
    for name in tensors:
        module, _, part = name.rpartition(".")
        if part.endswith("_scale"):
            continue
        if part != "weight" or f"{module}.weight_scale" not in tensors:
            state[name] = tensors[name].to(dtype)
            continue
        linear = quantized_linear(tensors, module)
        if linear.kind == "int4" and keep_packed:
            model.set_submodule(module, _int4_linear(linear, tensors.get(f"{module}.bias"), kernels))
        else:
            state[name] = dequantize(linear).to(dtype)
    return state


def _int4_linear(linear: QuantizedLinear, bias: torch.Tensor | None, kernels: ctypes.CDLL | None) -> Int4Linear:
    if kernels is not None and NativeInt4Linear.takes(linear):
        return NativeInt4Linear(linear, bias, kernels)
    return torch_int4_linear(linear, bias)


def _assign(model: nn.Module, state: dict[str, torch.Tensor]) -> list[str]:
    """Put tensors into the model without copying; returns the names it has no place for."""
    try:
        result = model.load_state_dict(state, strict=False, assign=True)
    except RuntimeError as error:  # shapes that differ, all in one message
        raise ModelError(f"the checkpoint does not fit its config.json: {error}", hint=_REBUILD_HINT) from None
    return list(result.unexpected_keys)


def _rebuild_rotary(model: PreTrainedModel) -> None:
    """Compute rotary frequencies anew: they are no part of a checkpoint, and so are still on the meta device."""
    rotary = [name for name, module in model.named_modules() if "inv_freq" in dict(module.named_buffers(recurse=False))]
    for name in rotary:
        model.set_submodule(name, type(model.get_submodule(name))(model.config))


def _require_complete(model: nn.Module, unexpected: list[str], folder: Path) -> None:
    missing = [name for name, tensor in (*model.named_parameters(), *model.named_buffers()) if tensor.is_meta]
    problems = [f"{name} is missing" for name in missing] + [f"{name} has no place in the model" for name in unexpected]
    if problems:
        raise ModelError(f"the checkpoint {folder} does not fit its model: {'; '.join(problems)}", hint=_REBUILD_HINT)
