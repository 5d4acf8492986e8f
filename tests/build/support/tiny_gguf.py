"""Writes a tiny random Llama as a GGUF file, with a byte-level BPE tokenizer inside."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np

__all__ = ["write_tiny_gguf"]

_LAYERS, _HIDDEN, _INNER, _HEADS, _KV_HEADS = 2, 64, 128, 4, 2


def write_tiny_gguf(path: Path, tokenizer_json: Path, *, seed: int) -> Path:
    """Write float32 tensors drawn from ``seed``; the tokenizer's vocabulary and merges are taken from its JSON."""
    model = json.loads(tokenizer_json.read_text())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(256)
    writer.add_embedding_length(_HIDDEN)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
    writer.add_token_types([gguf.TokenType.NORMAL] * len(tokens))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    draw = np.random.default_rng(seed)
    kv = _HIDDEN // _HEADS * _KV_HEADS
    shapes = {"token_embd": (len(tokens), _HIDDEN), "output": (len(tokens), _HIDDEN), "output_norm": (_HIDDEN,)}
    for layer in range(_LAYERS):
        shapes |= {
            f"blk.{layer}.{name}": shape
            for name, shape in {
                "attn_norm": (_HIDDEN,),
                "ffn_norm": (_HIDDEN,),
                "attn_q": (_HIDDEN, _HIDDEN),
                "attn_k": (kv, _HIDDEN),
                "attn_v": (kv, _HIDDEN),
                "attn_output": (_HIDDEN, _HIDDEN),
                "ffn_gate": (_INNER, _HIDDEN),
                "ffn_up": (_INNER, _HIDDEN),
                "ffn_down": (_HIDDEN, _INNER),
            }.items()
        }
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", draw.normal(0, 0.15, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
