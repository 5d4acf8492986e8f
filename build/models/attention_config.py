"""What kind of attention a config describes: latent, sparse, or with sliding windows."""

from __future__ import annotations

from roundhouse.errors import ModelError

from .config_reader import ConfigReader
from .shape import Indexer, LatentAttention

__all__ = ["read_indexer", "read_latent", "read_windows"]

_FULL = ("full_attention", "indexed_attention", "global_attention")
_SLIDING = ("sliding_attention", "sliding_window_attention", "local_attention")
_DEFAULT_PATTERNS = {"gemma2": 2, "gemma3_text": 6, "gemma3": 6, "gpt_oss": 2, "cohere2": 4}
"""Every n-th layer of these families sees everything, the others slide, when their configs do not say."""


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
    """The indexer of sparse attention and the layers that own one, or None."""
    heads = reader.optional_count("index_n_heads")
    if heads is None:
        return None
    owned = _indexer_layers(reader, layers)
    return Indexer(heads=heads, head_dim=reader.count("index_head_dim"), top_k=reader.count("index_topk"), layers=tuple(owned))


def _indexer_layers(reader: ConfigReader, layers: int) -> list[int]:
    """Layers that run an indexer of their own; as in transformers' GlmMoeDsaConfig."""
    types = reader.names("indexer_types", length=layers)
    pattern = reader.value("index_topk_pattern")
    frequency, offset = reader.optional_count("index_topk_freq") or 1, reader.optional_size("index_skip_topk_offset")
    if types is None and pattern is not None:
        types = [{"F": "full", "S": "shared"}.get(letter, letter) for letter in pattern]
        if len(types) != layers:
            raise ModelError(f"{reader.where}: index_topk_pattern names {len(types)} layers, the model has {layers}")
    if types is None:
        first = 2 if offset is None else offset
        return [layer for layer in range(layers) if max(layer - first + 1, 0) % frequency == 0]
    if unknown := sorted(set(types) - {"full", "shared"}):
        raise ModelError(f"{reader.where}: indexer_types names {', '.join(unknown)}, known are full and shared")
    return [layer for layer, kind in enumerate(types) if kind == "full"]


def read_windows(reader: ConfigReader, model_type: str, layers: int) -> tuple[int | None, tuple[int, ...]]:
    """How far sliding layers look back, and which layers slide; (None, ()) when every layer sees everything."""
    types = reader.names("layer_types", length=layers)
    if unknown := sorted(set(types or ()) - {*_FULL, *_SLIDING}):
        raise ModelError(
            f"{reader.where}: layer_types names {', '.join(unknown)}: what these layers keep in the cache is not known here",
            hint=f"Known: {', '.join((*_FULL, *_SLIDING))}.",
        )
    window = reader.optional_count("sliding_window")
    pattern = reader.optional_count("sliding_window_pattern") or _DEFAULT_PATTERNS.get(model_type)
    switch, first = reader.value("use_sliding_window"), reader.optional_size("max_window_layers")
    if window is None or switch is False:
        return None, ()
    if types is not None:
        sliding = [layer for layer, kind in enumerate(types) if kind in _SLIDING]
    elif pattern is not None:
        sliding = [layer for layer in range(layers) if (layer + 1) % pattern]
    else:
        sliding = list(range(first if switch is True and first is not None else 0, layers))
    return (window, tuple(sliding)) if sliding else (None, ())
