"""The dimensions of a decoder-only transformer: what everything else is computed from."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["Indexer", "InputQuantization", "Kernel", "LatentAttention", "MixtureOfExperts", "ModelShape"]

Kernel = Literal["int4_awq", "w4a8_awq", "gptq", "compressed_int4", "fp8", "fp8_block", "nvfp4", "mxfp4"]
"""Matrix products that already quantized weights ask a runtime for: the same bits are laid out and scaled in several ways."""


class LatentAttention(BaseModel):
    """Multi-head latent attention (MLA): keys and values are kept as one compressed row a token."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int

    @property
    def row_elements(self) -> int:
        """Elements a token leaves per layer: the compressed keys and values, and the rotary part."""
        return self.kv_lora_rank + self.qk_rope_head_dim


class Indexer(BaseModel):
    """The part of sparse attention (DSA) that picks ``top_k`` earlier tokens; ``layers`` own one, the others share theirs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    heads: int
    head_dim: int
    top_k: int
    layers: tuple[int, ...]


class MixtureOfExperts(BaseModel):
    """Routed experts in ``layers``; the other layers have one dense MLP."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    experts: int
    experts_per_token: int
    intermediate: int
    """Hidden size of one routed expert."""
    shared_intermediate: int
    """Hidden size of all shared experts together; 0 when there are none."""
    layers: tuple[int, ...]


class InputQuantization(BaseModel):
    """What the weights of an input are already quantized to, as its configs say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """As the config calls it: ``fp8``, ``compressed-tensors``, ``W4A16_AWQ``…"""
    format: Literal["fp8", "fp8_block", "int4", "nvfp4", "mxfp4"] | None
    """What the planner knows it as, or None when it does not: bytes then come from file headers only."""
    kernel: Kernel | None = None
    """Which kernels it needs, or None when that is not known."""
    group_size: int | None = None
    bits: int | None = None
    """Bits a weight, where the config says so: more is packed into one number of the files the fewer they are."""
    excluded: tuple[str, ...] = ()
    """Patterns of module names that stayed 16-bit (regular expressions after ``re:``, else wildcards or parts of names)."""


class ModelShape(BaseModel):
    """The dimensions of a decoder-only transformer, one field per number in ``config.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    architecture: str
    model_type: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    """Elements of a key or value head; of the rotary part only where attention is latent."""
    latent: LatentAttention | None = None
    indexer: Indexer | None = None
    moe: MixtureOfExperts | None = None
    mtp_layers: int = 0
    """Extra layers that predict further tokens (multi-token prediction), stored behind the others."""
    vocab: int
    max_positions: int
    tied_embeddings: bool
    sliding_window: int | None
    """Tokens that the ``sliding_layers`` look back on; None when every layer sees everything."""
    sliding_layers: tuple[int, ...] = ()
    attention_bias: bool | None = None
    """Whether attention's linears have biases; None when the config does not say: families have habits."""
    mlp_bias: bool = False
    qk_norm: bool = False
    """Whether queries and keys are normed in families that leave the choice to the config."""
    rope: str
    """The kind of rotary embedding: default, linear, llama3, yarn, dynamic, longrope."""
    other_params: int = 0
    """Parameters of towers beside the language model (vision), where they are known without files."""
    dtype: Literal["bf16", "fp16", "float32"]
    dtype_from: str
    """Which key or file the dtype was read from: shown to the user, because absent and null keys are common."""
    quantization: InputQuantization | None = None
    unread: tuple[str, ...] = ()
    """Config keys that were not read: listed for the user, because one of them may matter after all."""

    @property
    def has_windows(self) -> bool:
        """Whether some layers forget: a window shorter than the longest sequence."""
        return bool(self.sliding_layers) and (self.sliding_window or 0) < self.max_positions
