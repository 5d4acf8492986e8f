"""Our verified checkpoint as one of TensorRT-LLM: ``config.json`` and ``rankN.safetensors``.

ModelOpt can write such a checkpoint itself, from a model in memory. This one is made from the files that were verified, so that
what is compiled is what was measured; ``checkpoint_check.py`` reads it back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from roundhouse.errors import BuildError

from ..events import OnStep
from ..models.config import read_config
from ..models.shape import ModelShape
from ..planner.plan import Plan
from ..weights import Tensors
from .checkpoint_config import FAMILIES, checkpoint_config
from .linears import LINEARS, convert_linear
from .ranks import Rank, ranks

if TYPE_CHECKING:
    import torch

__all__ = ["EMBEDDING", "HEAD", "NORMS", "padded_vocab", "rank_file", "write_trtllm_checkpoint"]

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
NORMS = {
    "input_layernorm": "input_layernorm",
    "post_attention_layernorm": "post_layernorm",
    "self_attn.q_norm": "attention.q_layernorm",
    "self_attn.k_norm": "attention.k_layernorm",
}
"""Norms of a layer, and what TensorRT-LLM calls them; every rank of a stage holds them whole."""


def rank_file(index: int) -> str:
    """The file of one rank's weights."""
    return f"rank{index}.safetensors"


def padded_vocab(vocab: int, tensor: int) -> int:
    """Rows of the head of all ranks of a stage: upstream gives each as many."""
    return -(-vocab // tensor) * tensor


def write_trtllm_checkpoint(checkpoint: Path, folder: Path, plan: Plan, on_step: OnStep = lambda *_: None) -> None:
    """Convert a verified checkpoint for the ranks of a plan.

    Args:
        checkpoint: of an engine; unified, as ModelOpt exports it.
        folder: for the new one; it is made.
        plan: whose recipe says how many ranks there are.
        on_step: told after each rank.

    Raises:
        BuildError: the model, or a tensor of it, cannot be converted.
    """
    from safetensors.torch import save_file

    recipe, shape = plan.recipe, plan.shape
    config = checkpoint_config(read_config(checkpoint), shape, recipe, plan.group_size)
    tensors = Tensors(checkpoint)
    _require_known(tensors, shape)
    folder.mkdir(parents=True)
    everyone = ranks(shape, tensor=recipe.tensor_parallel, pipeline=recipe.pipeline_parallel)
    for rank in everyone:
        save_file(dict(_rank_tensors(tensors, shape, rank)), folder / rank_file(rank.index))
        on_step(rank.index + 1, len(everyone))
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def _rank_tensors(tensors: Mapping[str, torch.Tensor], shape: ModelShape, rank: Rank) -> Iterator[tuple[str, torch.Tensor]]:
    if rank.embeds:
        yield "transformer.vocab_embedding.weight", tensors[EMBEDDING].clone()
    for local, index in enumerate(rank.layers):
        layer, name = f"model.layers.{index}", f"transformer.layers.{local}"
        for linear in LINEARS:
            for part, tensor in convert_linear(linear, layer, tensors, shape, rank).items():
                yield f"{name}.{linear.name}.{part}", tensor
        for norm, theirs in NORMS.items():
            if f"{layer}.{norm}.weight" in tensors:
                yield f"{name}.{theirs}.weight", tensors[f"{layer}.{norm}.weight"]
        scales = [tensors[key] for key in _kv_scales(layer) if key in tensors]
        if scales:
            # One for both: upstream takes the larger where there are two, and the cache then never overflows.
            yield f"{name}.attention.kv_cache_scaling_factor", max(scale.float().reshape(1) for scale in scales)
    if rank.answers:
        yield "transformer.ln_f.weight", tensors["model.norm.weight"]
        yield "lm_head.weight", _head(tensors, shape, rank)


def _head(tensors: Mapping[str, torch.Tensor], shape: ModelShape, rank: Rank) -> torch.Tensor:
    """A rank's rows of the head, written out where it is tied, too: upstream shares tables of one shape only."""
    import torch

    whole = tensors[HEAD if HEAD in tensors else EMBEDDING]
    rows = rank.share(padded_vocab(shape.vocab, rank.tensor))
    own = whole[rows.start : rows.stop]
    padding = torch.zeros(len(rows) - own.shape[0], own.shape[1], dtype=own.dtype)
    return torch.cat((own, padding))


def _kv_scales(layer: str) -> tuple[str, str]:
    return f"{layer}.self_attn.k_proj.k_scale", f"{layer}.self_attn.v_proj.v_scale"


def _require_known(tensors: Mapping[str, torch.Tensor], shape: ModelShape) -> None:
    """Refuse a checkpoint with a tensor that would be left behind, or that upstream would leave out.

    Raises:
        BuildError: naming it.
    """
    known = {EMBEDDING, HEAD, "model.norm.weight"}
    parts = [part for linear in LINEARS for part in linear.parts]
    for index in range(shape.layers):
        layer = f"model.layers.{index}"
        known.update(f"{layer}.{norm}.weight" for norm in NORMS)
        known.update(_kv_scales(layer))
        known.update(f"{layer}.{part}.{suffix}" for part in parts for suffix in _SUFFIXES)
    unknown = sorted(set(tensors) - known)
    if FAMILIES.get(shape.architecture) != "llama":
        unknown += sorted(name for name in tensors if name.endswith("o_proj.bias"))  # upstream's Qwen has none
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        raise BuildError(f"TensorRT-LLM's {shape.architecture} has no place for {', '.join(unknown[:3])}{more}")


_SUFFIXES = ("weight", "bias", "weight_scale", "input_scale", "pre_quant_scale")
