"""Reading a model folder's ``config.json`` into a :class:`~.shape.ModelShape`, whatever family wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from roundhouse.errors import ModelError

from .attention_config import read_indexer, read_latent, read_windows
from .config_reader import ConfigReader
from .moe_config import read_moe
from .quantization_config import read_quantization
from .shape import ModelShape

__all__ = ["read_config", "read_quant_config", "shape_from_config"]

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "float32"}

_TIED_BY_DEFAULT = ("gemma", "gemma2", "gemma3", "gemma3_text")
"""Families that leave ``tie_word_embeddings`` out of their configs and mean true."""

_FOREIGN_MEMORY = (
    "mamba_",
    "ssm_",
    "linear_attn",
    "linear_num_",
    "linear_key_",
    "linear_value_",
    "linear_conv_",
    "rwkv",
    "conv_l_cache",
)
"""Starts of keys that tell of layers which keep a state instead of keys and values: their cache is not known here."""

_OUTER_KEYS = ("architectures", "model_type")


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
    reader = ConfigReader(_language_model(config, where), where)
    _refuse_foreign_memory(reader)
    hidden, heads, layers = (reader.count(key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    model_type = reader.text("model_type")
    latent = read_latent(reader)
    head_dim = latent.qk_rope_head_dim if latent else _head_dim(reader, hidden, heads)
    window, sliding_layers = read_windows(reader, model_type, layers)
    dtype, dtype_from = _dtype(reader, stored_dtype)
    tied = reader.flag("tie_word_embeddings", default=model_type in _TIED_BY_DEFAULT)
    moe = read_moe(reader, layers)
    shape = ModelShape(
        architecture=_architecture(reader),
        model_type=model_type,
        hidden=hidden,
        intermediate=reader.count("intermediate_size"),
        layers=layers,
        heads=heads,
        kv_heads=reader.optional_count("num_key_value_heads") or heads,
        head_dim=head_dim,
        latent=latent,
        indexer=read_indexer(reader, layers),
        moe=moe,
        mtp_layers=reader.optional_size("num_nextn_predict_layers") or 0,
        vocab=reader.count("vocab_size"),
        max_positions=reader.count("max_position_embeddings"),
        tied_embeddings=tied,
        sliding_window=window,
        sliding_layers=sliding_layers,
        attention_bias=reader.flag("attention_bias"),
        rope=_rope(reader),
        other_params=reader.optional_size("other_params") or 0,
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
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} is not valid JSON: {error}", hint="Download the file again.") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} holds a {type(value).__name__}, not an object", hint="Download the file again.")
    return value


def _language_model(config: dict[str, Any], where: str) -> dict[str, Any]:
    """The language model's part of a config: models with a vision tower nest it. The outer architecture is kept."""
    inner = config.get("text_config")
    if not isinstance(inner, dict) or "hidden_size" in config:
        return config
    outer = {key: config[key] for key in _OUTER_KEYS if config.get(key) is not None}
    shared = {
        key: config[key]
        for key in ("dtype", "torch_dtype", "quantization_config", "tie_word_embeddings", "other_params")
        if config.get(key) is not None and inner.get(key) is None
    }
    both = config.get("quantization_config"), inner.get("quantization_config")
    if all(both) and both[0] != both[1]:
        raise ModelError(
            f"{where} has two quantization_config that disagree, one of them in text_config",
            hint="Find out which one describes the weights and delete the other.",
        )
    return {**inner, **outer, **shared}


def _refuse_foreign_memory(reader: ConfigReader) -> None:
    foreign = [key for key in reader.keys() if key.startswith(_FOREIGN_MEMORY) and reader.peek(key) is not None]  # noqa: SIM118
    if foreign:
        raise ModelError(
            f"{reader.where}: {', '.join(foreign)} tell of layers that keep a state instead of keys and values",
            hint="Only attention (grouped-query, sliding-window, latent and sparse latent) is planned by this version.",
        )


def _head_dim(reader: ConfigReader, hidden: int, heads: int) -> int:
    explicit = reader.optional_count("head_dim")
    if explicit is None and hidden % heads:
        raise ModelError(
            f"{reader.where}: hidden_size {hidden} is not divisible by num_attention_heads {heads}, and head_dim is absent"
        )
    return explicit or hidden // heads


def _dtype(reader: ConfigReader, stored: str | None) -> tuple[Literal["bf16", "fp16", "float32"], str]:
    for key in ("dtype", "torch_dtype"):
        named = reader.value(key)
        if named is not None:
            name, source = str(named).removeprefix("torch."), f"config.json {key}"
            break
    else:
        name, source = stored or "", "safetensors headers"
    if name not in _DTYPES:
        raise ModelError(f"{source} names dtype {name or 'nothing'!r}", hint=f"Known dtypes: {', '.join(_DTYPES)}.")
    return _DTYPES[name], source  # type: ignore[return-value]  # a dict lookup cannot carry the literal


def _architecture(reader: ConfigReader) -> str:
    named = reader.value("architectures")
    if named is None:
        return ""
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise ModelError(f"{reader.where}: architectures is {named!r}, expected a list of names")
    return named[0] if named else ""


def _rope(reader: ConfigReader) -> str:
    """The kind of rotary embedding, under any of the names that configs have for it."""
    for key in ("rope_parameters", "rope_scaling"):
        parameters = reader.object(key)
        by_layer_type = [value for value in parameters.values() if isinstance(value, dict)]
        kinds = [str(each.get("rope_type") or each.get("type") or "default") for each in by_layer_type or [parameters] if each]
        if kinds:
            return next((kind for kind in kinds if kind != "default"), "default")
    return "default"
