"""Reading a model folder's ``config.json`` into a :class:`~.shape.ModelShape`, whatever family wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from roundhouse.errors import ModelError

from .attention_config import read_indexer, read_latent, read_windows
from .config_reader import ConfigReader
from .moe_config import read_moe
from .nested_config import language_model_config
from .quantization_config import read_quantization
from .shape import ModelShape

__all__ = ["read_config", "read_quant_config", "shape_from_config"]

_DTYPES: dict[str, Literal["bf16", "fp16", "float32"]] = {"bfloat16": "bf16", "float16": "fp16", "float32": "float32"}

_MOST_LAYERS = 10_000
"""No model has more; who writes a larger number has made a mistake."""

_TIED_BY_DEFAULT = frozenset({
    "cohere", "cohere2", "ernie4_5", "ernie4_5_moe", "falcon", "gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n_text",
    "minicpm3", "smollm3", "starcoder2", "youtu",
})  # fmt: skip
"""Families that leave ``tie_word_embeddings`` out of their configs and mean true."""

_ROPE_KEYS = ("rope_type", "type")

_FOREIGN_MEMORY = (
    "attn_layer_", "block_types", "compress_ratios", "conv_L_cache", "hybrid_", "layernorm_linear_", "layers_block_type",
    "linear_attn", "linear_conv_", "linear_key_", "linear_num_", "linear_value_", "lru_", "mamba_", "rwkv", "ssm_",
)  # fmt: skip
"""Starts of keys that tell of layers which keep a state instead of keys and values, or windows in a form not read here."""


def read_config(folder: Path) -> dict[str, Any]:
    """Read ``config.json`` of a model folder.

    Raises:
        ModelError: the folder or the file is missing, or the file is not a JSON object.
    """
    config = _read_object(folder / "config.json")
    if config is None:
        raise ModelError(
            f"{folder} has no config.json", hint="A Hugging Face model folder holds config.json and *.safetensors."
        )
    return config


def read_quant_config(folder: Path) -> dict[str, Any] | None:
    """Read ``hf_quant_config.json`` of a model folder, or None when it has none."""
    return _read_object(folder / "hf_quant_config.json")


def shape_from_config(
    config: dict[str, Any], *, stored_dtype: str | None, quant_config: dict[str, Any] | None = None, where: str = "config.json"
) -> ModelShape:
    """Turn a parsed ``config.json`` into a :class:`ModelShape`.

    Args:
        config: the parsed file; a language model nested in ``text_config`` is unwrapped.
        stored_dtype: the dtype most weight bytes are stored in (from safetensors headers), used when
            the config names none.
        quant_config: the parsed ``hf_quant_config.json``, when the folder has one.
        where: how to call the file in errors.

    Raises:
        ModelError: a dimension is missing or impossible, two quantization configs disagree, or the
            model keeps something in its cache that is not known here.
    """
    merged, family = language_model_config(config, where)
    reader = ConfigReader(merged, where)
    _refuse_foreign_memory(reader)
    hidden, heads, layers = (reader.count(key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    mtp_layers = reader.optional_size("num_nextn_predict_layers") or 0
    if layers + mtp_layers > _MOST_LAYERS:
        key = "num_hidden_layers" if layers > _MOST_LAYERS else "num_nextn_predict_layers"
        raise reader.wrong(key, f"{_MOST_LAYERS:,} layers at most")
    latent = read_latent(reader)
    window, sliding_layers = read_windows(reader, family, layers)
    dtype, dtype_from = _dtype(reader, stored_dtype)
    other_params = reader.optional_size("other_params")
    if other_params is not None:
        reader.value("vision_config")  # what it would make is counted already
    biased, qkv_biased = reader.optional_flag("attention_bias"), reader.optional_flag("qkv_bias")
    shape = ModelShape(
        architecture=next(iter(reader.texts("architectures")), ""),
        model_type=reader.text("model_type"),
        hidden=hidden,
        intermediate=reader.count("intermediate_size"),
        layers=layers,
        heads=heads,
        kv_heads=reader.optional_count("num_key_value_heads") or heads,
        head_dim=latent.qk_rope_head_dim if latent else _head_dim(reader, hidden, heads),
        latent=latent,
        indexer=read_indexer(reader, layers),
        moe=read_moe(reader, layers),
        mtp_layers=mtp_layers,
        vocab=reader.count("vocab_size"),
        max_positions=reader.count("max_position_embeddings"),
        tied_embeddings=reader.flag("tie_word_embeddings", default=family in _TIED_BY_DEFAULT),
        sliding_window=window,
        sliding_layers=sliding_layers,
        attention_bias=qkv_biased if biased is None else biased,
        mlp_bias=reader.flag("mlp_bias"),
        qk_norm=reader.flag("use_qk_norm"),
        rope=_rope(reader),
        other_params=other_params or 0,
        dtype=dtype,
        dtype_from=dtype_from,
        quantization=read_quantization(reader, quant_config),
    )
    return shape.model_copy(update={"unread": reader.unread()})


def _read_object(path: Path) -> dict[str, Any] | None:
    """A JSON object from a file, or None when the file does not exist."""
    try:
        value = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not valid JSON: {error}", hint="Download the file again.") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} holds a {type(value).__name__}, not an object", hint="Download the file again.")
    return value


def _refuse_foreign_memory(reader: ConfigReader) -> None:
    foreign = [key for key in reader.keys() if key.startswith(_FOREIGN_MEMORY) and reader.peek(key) is not None]  # noqa: SIM118
    if foreign:
        raise ModelError(
            f"{reader.where}: {', '.join(foreign)} tell of layers whose cache is not known here",
            hint="Only attention (grouped-query, sliding-window, latent and sparse latent) is planned by this version.",
        )


def _head_dim(reader: ConfigReader, hidden: int, heads: int) -> int:
    explicit = reader.optional_count("head_dim")
    if explicit is None and hidden % heads:
        raise reader.error(f"hidden_size {hidden} is not divisible by num_attention_heads {heads}, and head_dim is absent")
    return explicit or hidden // heads


def _dtype(reader: ConfigReader, stored: str | None) -> tuple[Literal["bf16", "fp16", "float32"], str]:
    named = {key: text.removeprefix("torch.") for key in ("dtype", "torch_dtype") if (text := reader.optional_text(key))}
    key = next(iter(named), None)
    name, source = (named[key], f"config.json {key}") if key else (stored or "", "safetensors headers")
    if name not in _DTYPES:
        raise ModelError(f"{source} names dtype {name or 'nothing'!r}", hint=f"Known dtypes: {', '.join(_DTYPES)}.")
    return _DTYPES[name], source


def _rope(reader: ConfigReader) -> str:
    """The kind of rotary embedding, under any of the names that configs have for it; of the kinds of several types of
    layers the one that is not the default.
    """
    kinds = []
    for key in ("rope_scaling", "rope_parameters"):
        whole = ConfigReader(reader.object(key), f"{reader.where}: {key}")
        layer_types = {*whole.keys()} - {*_ROPE_KEYS}
        parts = [
            ConfigReader(whole.object(name), f"{whole.where}: {name}")
            for name in sorted(layer_types)
            if isinstance(whole.peek(name), dict)
        ]
        kinds += [next(filter(None, map(part.text, _ROPE_KEYS)), "default") for part in (whole, *parts)]
    kind = next((kind for kind in kinds if kind != "default"), "default")
    return "longrope" if kind == "su" else kind  # the name that Phi-3 was published with
