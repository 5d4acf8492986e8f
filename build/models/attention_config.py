"""What kind of attention a config describes: latent, sparse, or with sliding windows."""

from __future__ import annotations

from collections.abc import Iterable

from roundhouse.errors import ModelError

from .config_reader import ConfigReader
from .shape import Indexer, LatentAttention

__all__ = ["read_indexer", "read_latent", "read_windows"]

_FULL = ("full_attention", "indexed_attention", "global_attention")
_SLIDING = ("sliding_attention", "sliding_window_attention", "local_attention")
_DEFAULT_PATTERNS = {"gemma2": 2, "gemma3_text": 6, "gemma3": 6, "gpt_oss": 2, "cohere2": 4}
"""Every n-th layer of these families sees everything, the others slide, when their configs do not say."""
_SWITCHED = ("qwen2", "qwen2_moe", "qwen3", "qwen3_moe")
"""Families whose windows mean nothing unless ``use_sliding_window`` is true."""
_DEFAULT_WINDOWS = {
    **dict.fromkeys(("cohere2", "gemma2", "gemma3", "gemma3_text", "mistral", *_SWITCHED), 4096),
    "gpt_oss": 128,
}
"""Windows of families, when their configs do not say."""
_BOUNDARY = 28
"""Where windows begin (or end) in Qwen's layers, when ``max_window_layers`` does not say."""


def read_latent(reader: ConfigReader) -> LatentAttention | None:
    """Multi-head latent attention, or None."""
    rank = reader.optional_count("kv_lora_rank")
    if rank is None:
        return None
    reader.value("head_dim")  # families disagree on what it means beside the explicit parts
    return LatentAttention(
        q_lora_rank=reader.optional_count("q_lora_rank"),
        kv_lora_rank=rank,
        qk_nope_head_dim=reader.count("qk_nope_head_dim"),
        qk_rope_head_dim=reader.count("qk_rope_head_dim"),
        v_head_dim=reader.count("v_head_dim"),
    )


def read_indexer(reader: ConfigReader, layers: int) -> Indexer | None:
    """The indexer of sparse attention and the layers that own one, or None.

    Raises:
        ModelError: half of it is there, or it picks tokens of something else than latent attention.
    """
    if all(reader.peek(key) is None for key in ("index_n_heads", "index_head_dim", "index_topk")):
        return None
    if reader.peek("kv_lora_rank") is None:
        raise ModelError(
            f"{reader.where} has index_topk and no kv_lora_rank: sparse attention without latents is not known here",
            hint="Only attention (grouped-query, sliding-window, latent and sparse latent) is planned by this version.",
        )
    heads, head_dim, top_k = (reader.count(key) for key in ("index_n_heads", "index_head_dim", "index_topk"))
    return Indexer(heads=heads, head_dim=head_dim, top_k=top_k, layers=_indexer_layers(reader, layers))


def _indexer_layers(reader: ConfigReader, layers: int) -> tuple[int, ...]:
    """Layers that run an indexer of their own; as in transformers' GlmMoeDsaConfig."""
    types, pattern = reader.names("indexer_types", length=layers), _indexer_pattern(reader, layers)
    frequency, offset = reader.optional_count("index_topk_freq") or 1, reader.optional_size("index_skip_topk_offset")
    if types is None and pattern is None:
        first = 2 if offset is None else offset
        return tuple(layer for layer in range(layers) if max(layer - first + 1, 0) % frequency == 0)
    named = types or pattern or ()
    if unknown := sorted(set(named) - {"full", "shared"}):
        key = "index_topk_pattern" if types is None else "indexer_types"
        raise reader.error(f"{key} names {', '.join(unknown)}, known are full and shared")
    return tuple(layer for layer, kind in enumerate(named) if kind == "full")


def _indexer_pattern(reader: ConfigReader, layers: int) -> tuple[str, ...] | None:
    """``index_topk_pattern``: one letter a layer (``FSSS…``), or a list of names."""
    pattern = reader.value("index_topk_pattern")
    if not isinstance(pattern, str):
        return reader.names("index_topk_pattern", length=layers)
    if len(pattern) != layers:
        raise reader.error(f"index_topk_pattern names {len(pattern)} layers, the model has {layers}")
    return tuple({"F": "full", "S": "shared"}.get(letter, letter) for letter in pattern)


def read_windows(reader: ConfigReader, family: str, layers: int) -> tuple[int | None, tuple[int, ...]]:
    """How far sliding layers look back, and which layers slide; (None, ()) when every layer sees everything.

    Args:
        reader: the config.
        family: the language model's own ``model_type``: what a config leaves out, families have habits for.
        layers: how many there are.
    """
    types = reader.names("layer_types", length=layers)
    if unknown := sorted(set(types or ()) - {*_FULL, *_SLIDING}):
        raise ModelError(
            f"{reader.where}: layer_types names {', '.join(unknown)}: what these layers keep in the cache is not known here",
            hint=f"Known: {', '.join((*_FULL, *_SLIDING))}.",
        )
    # An explicit null is a model that was trained without windows; only an absent key means the family's own.
    absent = "sliding_window" not in reader.keys()  # noqa: SIM118  # not a mapping
    window = _DEFAULT_WINDOWS.get(family) if absent else reader.optional_size("sliding_window")
    on = reader.flag("use_sliding_window", default=family not in _SWITCHED)
    by_habit = _sliding_by_habit(reader, family, layers, known=types is not None)
    if not window or not on:
        return None, ()
    sliding = by_habit if types is None else (layer for layer, kind in enumerate(types) if kind in _SLIDING)
    found = tuple(sliding)
    return (window, found) if found else (None, ())


def _sliding_by_habit(reader: ConfigReader, family: str, layers: int, *, known: bool) -> Iterable[int]:
    """Layers that slide in a config without ``layer_types``."""
    bound = reader.optional_size("max_window_layers")
    if known:
        reader.value("sliding_window_pattern")  # families write it in forms of their own beside layer_types
        return ()
    pattern = reader.optional_count("sliding_window_pattern") or _DEFAULT_PATTERNS.get(family)
    if pattern is not None:
        return (layer for layer in range(layers) if (layer + 1) % pattern)
    if family == "qwen2_moe":  # every other layer of the first ones
        return range(0, min(_BOUNDARY if bound is None else bound, layers), 2)
    if family == "qwen3_moe":  # reads no max_window_layers
        return range(layers)
    default = _BOUNDARY if family in ("qwen2", "qwen3") else 0
    return range(default if bound is None else bound, layers)
