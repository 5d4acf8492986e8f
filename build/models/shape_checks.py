"""Does a config describe the tensors that lie beside it? Found out before anything is computed from it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from roundhouse.errors import ModelError

from .checkpoint import Checkpoint
from .missing_tensors import missing_tensors
from .parameters import in_tower, part_and_split
from .shape import ModelShape

__all__ = ["check_shapes"]

_PLAIN = ("BF16", "F16", "F32", "F8_E4M3")
_FLOATS = ("BF16", "F16", "F32", "F64")
_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")


def check_shapes(shape: ModelShape, checkpoint: Checkpoint, folder: Path) -> None:
    """Compare stored shapes with what the config says; packed tensors are left to the quantizer's own checks.

    Raises:
        ModelError: with every number that differs, and where it stands.
    """
    # Experts are most names and say nothing that the rest of their layers does not.
    own = [name for name in checkpoint.tensors if ".experts." not in name and not in_tower(name) and name[:4] != "mtp."]
    wrong = list(_wrong_sizes(shape, checkpoint, own))
    problems = [
        *wrong,
        *_wrong_layers(shape, own),
        *_no_head(shape, own),
        *missing_tensors(shape, own),
        *_not_quantized(shape, checkpoint),
    ]
    if problems:
        shown = problems[:4] + ([f"and {len(problems) - 4} more"] if len(problems) > 4 else [])
        heads = any("head_dim" in problem for problem in wrong)
        about_heads = " An explicit head_dim in config.json wins over hidden_size / num_attention_heads." if heads else ""
        raise ModelError(
            f"{folder}: config.json does not fit the weights: {'; '.join(shown)}",
            hint=f"One of the two is from another model or was changed; download both again.{about_heads}",
        )


def _wrong_sizes(shape: ModelShape, checkpoint: Checkpoint, names: Iterable[str]) -> Iterable[str]:
    wanted = _expected(shape)
    for name in names:
        tensor = checkpoint.tensors[name]
        ending = next((ending for ending in wanted if name.endswith(ending)), None)
        if ending is None or tensor.dtype not in _PLAIN or len(tensor.shape) != 2:
            continue
        for size, axis, told in wanted[ending]:
            if tensor.shape[axis] != size:
                yield f"{name} is {list(tensor.shape)}, config.json makes it {told} = {size}"


def _wrong_layers(shape: ModelShape, names: Iterable[str]) -> Iterable[str]:
    layers = {int(found[1]) for name in names if (found := _LAYER.search(name))}
    told = f"config.json says num_hidden_layers {shape.layers}"
    if layers and (missing := sorted({*range(shape.layers)} - layers)):
        yield f"there are no tensors of {_span(missing)}, {told}"
    if more := sorted(layer for layer in layers if layer >= shape.layers + shape.mtp_layers):
        extra = f" and num_nextn_predict_layers {shape.mtp_layers}" if shape.mtp_layers else ""
        yield f"there are tensors of {_span(more)}, {told}{extra}"


def _span(layers: list[int]) -> str:
    return f"layers {layers[0]} to {layers[-1]}" if len(layers) > 1 else f"layer {layers[0]}"


def _no_head(shape: ModelShape, names: Iterable[str]) -> Iterable[str]:
    """Without a head of its own the model answers with noise, unless the head is the embedding again."""
    parts = {part_and_split(name) for name in names if not _LAYER.search(name)}
    if not shape.tied_embeddings and ("embedding", "outputs") in parts and ("head", "outputs") not in parts:
        yield "there is no lm_head.weight, config.json says tie_word_embeddings false (or nothing, which is false here)"


def _not_quantized(shape: ModelShape, checkpoint: Checkpoint) -> Iterable[str]:
    """A config that tells of quantization, over tensors that are plain numbers without a scale among them."""
    told = shape.quantization
    if told is None or not checkpoint.tensors:
        return
    plain = all(tensor.dtype in _FLOATS and "scale" not in name for name, tensor in checkpoint.tensors.items())
    if plain:
        yield f"it says that the weights are quantized ({told.name}), and all tensors are plain floats without scales"


def _expected(shape: ModelShape) -> dict[str, list[tuple[int, int, str]]]:
    """Name ending → (size, axis, where the size comes from), one for each axis that is told."""
    found = {
        "model.embed_tokens.weight": [(shape.hidden, 1, "hidden_size"), (shape.vocab, 0, "vocab_size")],
        "lm_head.weight": [(shape.vocab, 0, "vocab_size")],
        "mlp.gate_proj.weight": [(shape.intermediate, 0, "intermediate_size")],
        "mlp.up_proj.weight": [(shape.intermediate, 0, "intermediate_size")],
        "mlp.down_proj.weight": [(shape.intermediate, 1, "intermediate_size")],
    }
    if shape.latent is not None:
        latent = shape.latent
        expanded = shape.heads * (latent.qk_nope_head_dim + latent.v_head_dim)
        return found | {
            "kv_a_proj_with_mqa.weight": [(latent.row_elements, 0, "kv_lora_rank + qk_rope_head_dim")],
            "kv_b_proj.weight": [(expanded, 0, "num_attention_heads x (qk_nope_head_dim + v_head_dim)")],
        }
    query = (shape.heads * shape.head_dim, "num_attention_heads x head_dim")
    key = (shape.kv_heads * shape.head_dim, "num_key_value_heads x head_dim")
    return found | {
        "self_attn.q_proj.weight": [(query[0], 0, query[1])],
        "self_attn.o_proj.weight": [(query[0], 1, query[1])],
        "self_attn.k_proj.weight": [(key[0], 0, key[1])],
        "self_attn.v_proj.weight": [(key[0], 0, key[1])],
    }
