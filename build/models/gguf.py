"""A GGUF model by its header: what ``config.json`` and the tensors of its imported folder will be.

The import turns every tensor into bf16 under its Hugging Face name, so the plan of a file is the plan of that folder.
What the import would get wrong without a word is refused here: a tensor that the model does not have would be left
out, and one that is missing would be filled with random numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .checkpoint import Checkpoint, StoredTensor
from .config import shape_from_config
from .gguf_file import GgufFile, GgufList, gguf_error, read_gguf_file
from .gguf_rope import ROPE_FACTORS, rope_parameters
from .inventory import inventory_from_shape
from .parameters import Parameter
from .shape import ModelShape

__all__ = ["GgufModel", "read_gguf"]

_ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {"architectures": ["LlamaForCausalLM"], "attention_bias": False, "mlp_bias": False},
    "qwen2": {"architectures": ["Qwen2ForCausalLM"]},
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "attention_bias": False},
}
"""What files call the architectures that are imported (Mistral models are ``llama``), and what their imported
``config.json`` says whatever the file."""

_DIMENSIONS = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
}
_HEAD_SIZES = ("rope.dimension_count", "attention.key_length", "attention.value_length")
_IRRELEVANT = ("vocab_size", "attention.layer_norm_rms_epsilon")

_MODULES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_TENSOR = re.compile(r"(?:blk\.(\d+)\.)?(\w+)\.(\w+)")
_SHOWN = 4
_GIVE_THE_FOLDER = "Give the model's Hugging Face folder instead of this file."
_READ_AS = "the GGUF import, which writes bf16"


@dataclass(frozen=True)
class GgufModel:
    """What the import of a GGUF file writes."""

    config: dict[str, Any]
    """The keys of ``config.json`` that follow from the file; keys of the file that were not read keep their names."""
    shape: ModelShape
    checkpoint: Checkpoint
    """Every tensor, with the dtype, shape and bytes that it will have."""


def read_gguf(path: Path) -> GgufModel:
    """Read a GGUF file by its header.

    Raises:
        ModelError: it is damaged, its architecture is not imported, or its tensors are not those of its architecture.
    """
    file = read_gguf_file(path)
    if (parts := file.metadata.get("split.count", 1)) != 1:
        hint = "Join them first: llama-gguf-split --merge FIRST-PART WHOLE.gguf"
        raise gguf_error(path, f"it is one of {parts} parts", hint=hint)
    config = _config(file)
    shape = shape_from_config(config, stored_dtype=None, where=str(path))
    shape = shape.model_copy(update={"dtype_from": _READ_AS})
    return GgufModel(config, shape, _checkpoint(file, shape))


def _config(file: GgufFile) -> dict[str, Any]:
    architecture = file.metadata.get("general.architecture")
    if not isinstance(architecture, str) or architecture not in _ARCHITECTURES:
        hint = f"Imported are: {', '.join(_ARCHITECTURES)}. {_GIVE_THE_FOLDER}"
        raise gguf_error(file.path, f"its architecture is {architecture!r}", hint=hint)
    config: dict[str, Any] = {name: _count(file, f"{architecture}.{key}") for key, name in _DIMENSIONS.items()}
    sizes = {_count(file, name) for key in _HEAD_SIZES if (name := f"{architecture}.{key}") in file.metadata}
    if len(sizes) > 1:
        told = ", ".join(f"{architecture}.{key}" for key in _HEAD_SIZES)
        raise gguf_error(file.path, f"{told} differ; heads of one size are imported", hint=_GIVE_THE_FOLDER)
    head_dim = sizes.pop() if sizes else config["hidden_size"] // config["num_attention_heads"]
    if architecture != "qwen2":  # its config has no such key: the size follows from the others
        config["head_dim"] = head_dim
    known = {f"{architecture}.{key}" for key in (*_DIMENSIONS, *_HEAD_SIZES, *_IRRELEVANT)}
    unread = {
        key: value
        for key, value in file.metadata.items()
        if key.startswith(f"{architecture}.") and not key.startswith(f"{architecture}.rope.") and key not in known
    }
    return config | unread | _ARCHITECTURES[architecture] | {
        "model_type": architecture,
        "vocab_size": _vocabulary(file, architecture),
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "rope_parameters": rope_parameters(file, architecture, head_dim, config["max_position_embeddings"]),
        "dtype": "bfloat16",
    }  # fmt: skip


def _vocabulary(file: GgufFile, architecture: str) -> int:
    words = file.metadata.get("tokenizer.ggml.tokens")
    if f"{architecture}.vocab_size" not in file.metadata and isinstance(words, GgufList):
        return words.length
    return _count(file, f"{architecture}.vocab_size")


def _count(file: GgufFile, key: str) -> int:
    value = file.metadata.get(key)
    if value is None:
        raise gguf_error(file.path, f"its metadata has no {key}", hint=_GIVE_THE_FOLDER)
    if isinstance(value, GgufList):
        raise gguf_error(file.path, f"{key} differs from layer to layer, which is not imported", hint=_GIVE_THE_FOLDER)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise gguf_error(file.path, f"{key} is {value!r}, expected a positive whole number", hint=_GIVE_THE_FOLDER)
    return value


def _checkpoint(file: GgufFile, shape: ModelShape) -> Checkpoint:
    """The tensors of the imported folder, in the order of their names, as safetensors files have them."""
    expected = {name: each.shape for each in inventory_from_shape(shape).parameters for name in _names(each)}
    found = {_imported_name(name): tensor for name, tensor in file.tensors.items() if name != ROPE_FACTORS}
    unknown = [tensor.name for name, tensor in found.items() if name not in expected]
    wrong = [
        f"{tensor.name} is {list(tensor.shape)}, its metadata makes it {list(expected[name])}"
        for name, tensor in found.items()
        if name in expected and expected[name] != tensor.shape
    ]
    _refuse(file, f"tensors that a {shape.architecture} does not have", unknown)
    _refuse(file, "no tensors for", expected.keys() - found.keys())
    _refuse(file, "tensors of another shape", wrong)
    tensors = {
        name: StoredTensor(name, "BF16", dims, 2 * math.prod(dims), file.path.name) for name, dims in sorted(expected.items())
    }
    return Checkpoint(folder=file.path.parent, files=(file.path.name,), tensors=tensors)


def _refuse(file: GgufFile, what: str, names: Iterable[str]) -> None:
    listed = sorted(names)
    if listed:
        more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
        raise gguf_error(file.path, f"it has {what}: {', '.join(listed[:_SHOWN])}{more}", hint=_GIVE_THE_FOLDER)


def _names(parameter: Parameter) -> Iterable[str]:
    if not parameter.layers:
        return [parameter.name]
    return [parameter.name.replace("*", str(layer)) for layer in parameter.layers]


def _imported_name(name: str) -> str:
    """The Hugging Face name of a tensor; one that is not known keeps its own."""
    parts = _TENSOR.fullmatch(name)
    if parts is None or parts[2] not in _MODULES:
        return name
    module = f"{_MODULES[parts[2]]}.{parts[3]}"
    return f"model.layers.{parts[1]}.{module}" if parts[1] else module
