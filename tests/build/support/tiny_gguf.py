"""Writes a tiny random model as a GGUF file, with a byte-level BPE tokenizer inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np

__all__ = ["write_tiny_gguf"]

_LAYERS, _HIDDEN, _INNER, _HEADS, _KV_HEADS = 2, 64, 128, 4, 2


def write_tiny_gguf(
    path: Path,
    tokenizer_json: Path,
    *,
    seed: int,
    architecture: str = "llama",
    head_dim: int = _HIDDEN // _HEADS,
    tied: bool = False,
    keys: Mapping[str, Any] | None = None,
    tensors: Mapping[str, tuple[int, ...] | np.ndarray[Any, Any] | None] | None = None,
) -> Path:
    """Write float32 tensors drawn from ``seed``; the tokenizer's vocabulary and merges are taken from its JSON.

    ``keys`` and ``tensors`` are added to what such a model has, or take its place; None leaves one out.
    """
    model = json.loads(tokenizer_json.read_text())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    writer = gguf.GGUFWriter(path, architecture)
    add = {str: writer.add_string, int: writer.add_uint32, float: writer.add_float32, list: writer.add_array}
    for key, value in (_metadata(architecture, len(tokens), head_dim) | dict(keys or {})).items():
        if value is not None:
            add[type(value)](key, value)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
    writer.add_token_types([gguf.TokenType.NORMAL] * len(tokens))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    draw = np.random.default_rng(seed)
    for name, tensor in (_shapes(architecture, len(tokens), head_dim, tied=tied) | dict(tensors or {})).items():
        if tensor is not None:
            numbers = draw.normal(0, 0.15, tensor) if isinstance(tensor, tuple) else tensor
            writer.add_tensor(name, numbers.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _metadata(architecture: str, words: int, head_dim: int) -> dict[str, Any]:
    found = {
        "context_length": 256,
        "embedding_length": _HIDDEN,
        "block_count": _LAYERS,
        "feed_forward_length": _INNER,
        "attention.head_count": _HEADS,
        "attention.head_count_kv": _KV_HEADS,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 10000.0,
        "vocab_size": words,
    }
    if architecture == "llama":
        found["rope.dimension_count"] = head_dim
    if architecture == "qwen3":
        found |= {"attention.key_length": head_dim, "attention.value_length": head_dim}
    return {f"{architecture}.{key}": value for key, value in found.items()}


def _shapes(architecture: str, words: int, head_dim: int, *, tied: bool) -> dict[str, Any]:
    """Name → shape with the outputs first."""
    query, key = _HEADS * head_dim, _KV_HEADS * head_dim
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (_HIDDEN,),
        "ffn_norm.weight": (_HIDDEN,),
        "attn_q.weight": (query, _HIDDEN),
        "attn_k.weight": (key, _HIDDEN),
        "attn_v.weight": (key, _HIDDEN),
        "attn_output.weight": (_HIDDEN, query),
        "ffn_gate.weight": (_INNER, _HIDDEN),
        "ffn_up.weight": (_INNER, _HIDDEN),
        "ffn_down.weight": (_HIDDEN, _INNER),
    }
    if architecture == "qwen2":
        layer |= {"attn_q.bias": (query,), "attn_k.bias": (key,), "attn_v.bias": (key,)}
    if architecture == "qwen3":
        layer |= {"attn_q_norm.weight": (head_dim,), "attn_k_norm.weight": (head_dim,)}
    found = {"token_embd.weight": (words, _HIDDEN), "output_norm.weight": (_HIDDEN,)}
    if not tied:
        found["output.weight"] = (words, _HIDDEN)
    return found | {f"blk.{number}.{name}": shape for number in range(_LAYERS) for name, shape in layer.items()}
