"""The tensors of a model as the planner sees them: what each is for, and how tensor parallelism splits it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["Inventory", "Parameter", "Part", "Split", "in_tower", "part_and_split"]

Part = Literal[
    "embedding",
    "head",
    "norm",
    "bias",
    "attention",
    "absorbed",
    "mlp",
    "router",
    "shared_expert",
    "routed_expert",
    "indexer",
    "scale",
    "other",
]
"""What a tensor is for. Only linears of attention, MLPs, experts and indexers are ever quantized; ``absorbed``
is a 16-bit copy that a runtime makes of latent attention's kv_b_proj; ``scale`` is a scale that belongs to no single
weight: of the KV cache, or of all experts in a fused tensor; ``other`` is a vision tower, or a tensor whose meaning is
not known."""

Split = Literal["none", "outputs", "inputs", "kv_heads"]
"""What tensor parallelism cuts: nothing (every rank holds it all), the first dimension (a linear's outputs, an
embedding's words), the second (a linear's inputs), or the first by whole key/value heads, which are repeated when
there are more ranks than heads."""


@dataclass(frozen=True)
class Parameter:
    """Equal tensors of a model: one in each of ``layers``, ``copies`` of it (experts) in each."""

    name: str
    """Layer and expert numbers are written as ``*``."""
    shape: tuple[int, ...]
    """As for 16-bit weights: (outputs, inputs) for a linear, whatever form it is stored in."""
    part: Part
    split: Split
    layers: tuple[int, ...] = ()
    """Empty for tensors outside the layers."""
    copies: int = 1
    stored_bytes: int | None = None
    """Bytes of one copy as stored with everything that belongs to it (scales), or None without files."""
    fused: bool = False
    """Whether the copies are one tensor in the files (experts fused into one)."""
    mtp: bool = False
    """Whether it belongs to a multi-token-prediction layer: stored, but loaded only for speculation."""
    excluded: bool = False
    """Whether the input's quantization left it 16-bit, by the list of names in its config."""

    @property
    def count(self) -> int:
        """How many equal tensors there are."""
        return self.copies * max(1, len(self.layers))

    @property
    def elements(self) -> int:
        """Elements of one of them."""
        return math.prod(self.shape)

    @property
    def is_linear(self) -> bool:
        """Whether it is the weight of a linear that a quantizer may take."""
        return len(self.shape) == 2 and self.part in ("attention", "mlp", "shared_expert", "routed_expert", "indexer")


@dataclass(frozen=True)
class Inventory:
    """Every tensor of a model, from its files or from its dimensions."""

    parameters: tuple[Parameter, ...]
    from_files: bool
    unknown: tuple[str, ...] = ()
    """Kinds of tensors whose meaning is not known: counted as stored, and held whole by every rank."""

    @property
    def stored_bytes(self) -> int:
        """Bytes of all tensors as stored; as 16-bit numbers without files."""
        return sum((2 * p.elements if p.stored_bytes is None else p.stored_bytes) * p.count for p in self.parameters)

    @property
    def elements(self) -> int:
        """Parameters of the model, multi-token-prediction layers left out."""
        return sum(parameter.elements * parameter.count for parameter in self.parameters if not parameter.mtp)


_OUTPUTS = ("q_proj", "q_b_proj", "kv_b_proj", "gate_proj", "up_proj", "gate_up_proj", "w1", "w3", "qkv_proj", "sinks")
_INPUTS = ("o_proj", "down_proj", "w2")
_KV_HEADS = ("k_proj", "v_proj")
_WHOLE = ("q_a_proj", "kv_a_proj_with_mqa")
_TOWERS = ("vision", "visual", "mm_projector", "multi_modal_projector", "audio")
_CACHE_SCALES = ("k_scale", "v_scale", "kv_scale", "output_scale", "kv_cache_scaling_factor")


def in_tower(name: str) -> bool:
    """Whether a tensor belongs to a tower beside the language model (vision, audio) or to what joins them."""
    return any(tower in name for tower in _TOWERS)


def part_and_split(name: str) -> tuple[Part, Split] | None:
    """What a tensor is for and how it is split, by its name in Hugging Face's form; None when the name is not known."""
    if in_tower(name):
        return "other", "none"
    words = name.split(".")
    if words[-1] in _CACHE_SCALES:
        return "scale", "none"
    module = words[-2] if words[-1] in ("weight", "bias") and len(words) > 1 else words[-1]
    split = _split(module.removesuffix("_bias"))
    if "embed_tokens" in name:
        return "embedding", "outputs"
    if module in ("lm_head", "head") and "attn" not in name:
        return "head", "outputs"
    if "indexer" in name:
        return ("norm" if "norm" in module else "indexer"), "none"
    if "norm" in module:
        return "norm", "none"
    if words[-1] in ("e_score_correction_bias", "per_expert_scale") or module in ("gate", "router", "shared_expert_gate"):
        return "router", "none"
    if split is None:
        return ("mlp", "none") if module == "eh_proj" else None
    if words[-1].endswith("bias"):
        return "bias", "none" if split == "inputs" else split
    if "shared_expert" in name:
        return "shared_expert", split
    if ".experts" in name:
        return "routed_expert", split
    return ("attention" if "attn" in name or module == "sinks" else "mlp"), split


def _split(module: str) -> Split | None:
    if module in _OUTPUTS:
        return "outputs"
    if module in _INPUTS:
        return "inputs"
    if module in _KV_HEADS:
        return "kv_heads"
    return "none" if module in _WHOLE else None
