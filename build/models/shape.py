"""Reading a model folder's ``config.json`` into the few numbers that everything else needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from roundhouse.errors import ModelError

__all__ = ["ModelShape", "read_config", "read_quant_config", "shape_from_config"]

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "float32"}


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
    latent: int | None
    """Elements a token leaves per layer with multi-head latent attention (compressed keys and values, and the
    rotary part); None for every other kind of attention."""
    vocab: int
    max_positions: int
    tied_embeddings: bool
    sliding_window: int | None
    rope: str
    """The kind of rotary embedding: default, linear, llama3, yarn, dynamic, longrope."""
    dtype: Literal["bf16", "fp16", "float32"]
    dtype_from: str
    """Which key or file the dtype was read from: shown to the user, because absent and null keys are common."""
    quantized_as: str | None
    """What the input is already quantized to, or None for plain weights."""


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
    return _language_model(config)


def _language_model(config: dict[str, Any]) -> dict[str, Any]:
    """The language model's part of a config: models with a vision tower nest it. The outer architecture is kept."""
    inner = config.get("text_config")
    if not isinstance(inner, dict) or "hidden_size" in config:
        return config
    outer = {key: config[key] for key in ("architectures", "model_type", "quantization_config") if config.get(key) is not None}
    return {**inner, **outer}


def read_quant_config(folder: Path) -> dict[str, Any] | None:
    """Read ``hf_quant_config.json`` of a model folder, or None when it has none."""
    return _read_object(folder / "hf_quant_config.json")


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


def shape_from_config(
    config: dict[str, Any], *, stored_dtype: str | None, quant_config: dict[str, Any] | None = None, where: str = "config.json"
) -> ModelShape:
    """Turn a parsed ``config.json`` into a :class:`ModelShape`.

    Args:
        config: the parsed file.
        stored_dtype: the dtype most weight bytes are stored in (from safetensors headers), used when
            the config names none.
        quant_config: the parsed ``hf_quant_config.json``, when the folder has one.
        where: how to call the file in errors.

    Raises:
        ModelError: a dimension is missing or impossible, or two quantization configs disagree.
    """
    reader = _Reader(config, where)
    hidden, heads = reader.count("hidden_size"), reader.count("num_attention_heads")
    explicit_head_dim = reader.optional_count("head_dim")
    latent = _latent(reader)
    if explicit_head_dim is None and latent is None and hidden % heads:
        raise ModelError(
            f"{where}: hidden_size {hidden} is not divisible by num_attention_heads {heads}, and head_dim is absent"
        )
    dtype, dtype_from = _dtype(config, stored_dtype)
    return ModelShape(
        architecture=_architecture(config, where),
        model_type=str(config.get("model_type") or ""),
        hidden=hidden,
        intermediate=reader.count("intermediate_size"),
        layers=reader.count("num_hidden_layers"),
        heads=heads,
        kv_heads=reader.optional_count("num_key_value_heads") or heads,
        head_dim=explicit_head_dim or hidden // heads,
        latent=latent,
        vocab=reader.count("vocab_size"),
        max_positions=reader.count("max_position_embeddings"),
        tied_embeddings=bool(config.get("tie_word_embeddings", False)),
        sliding_window=None if config.get("use_sliding_window") is False else reader.optional_count("sliding_window"),
        rope=_rope(config, where),
        dtype=dtype,
        dtype_from=dtype_from,
        quantized_as=_quantized_as(config, quant_config, where),
    )


class _Reader:
    """Reads whole numbers from a config; an absent and a null key are the same thing."""

    def __init__(self, config: dict[str, Any], where: str) -> None:
        self._config, self._where = config, where

    def optional_count(self, key: str) -> int | None:
        value = self._config.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ModelError(f"{self._where}: {key} is {value!r}, expected a positive whole number")
        return value

    def count(self, key: str) -> int:
        value = self.optional_count(key)
        if value is None:
            raise ModelError(f"{self._where} has no {key}", hint="Only plain decoder-only configs are read by this version.")
        return value


def _dtype(config: dict[str, Any], stored: str | None) -> tuple[Literal["bf16", "fp16", "float32"], str]:
    for key in ("dtype", "torch_dtype"):
        if config.get(key) is not None:
            name, source = str(config[key]).removeprefix("torch."), f"config.json {key}"
            break
    else:
        name, source = stored or "", "safetensors headers"
    if name not in _DTYPES:
        raise ModelError(f"{source} names dtype {name or 'nothing'!r}", hint=f"Known dtypes: {', '.join(_DTYPES)}.")
    return _DTYPES[name], source  # type: ignore[return-value]  # a dict lookup cannot carry the literal


def _latent(reader: _Reader) -> int | None:
    rank = reader.optional_count("kv_lora_rank")
    return None if rank is None else rank + reader.count("qk_rope_head_dim")


def _architecture(config: dict[str, Any], where: str) -> str:
    named = config.get("architectures")
    if named is None:
        return ""
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise ModelError(f"{where}: architectures is {named!r}, expected a list of names")
    return named[0] if named else ""


def _rope(config: dict[str, Any], where: str) -> str:
    """The kind of rotary embedding, under any of the names that configs have for it."""
    for key in ("rope_parameters", "rope_scaling"):
        parameters = _object(config, key, where)
        if parameters:
            return str(parameters.get("rope_type") or parameters.get("type") or "default")
    return "default"


def _object(config: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    """An object under a key; absent and null are the empty one."""
    value = config.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ModelError(f"{where}: {key} is {value!r}, expected an object")
    return value


def _quantized_as(config: dict[str, Any], quant_config: dict[str, Any] | None, where: str) -> str | None:
    """What the weights are already quantized to, from both places that may say so."""
    inline = _object(config, "quantization_config", where)
    from_config = inline.get("quant_algo") or inline.get("quant_method")
    from_file = _object(quant_config or {}, "quantization", "hf_quant_config.json").get("quant_algo")
    modelopt = inline.get("quant_method") == "modelopt" and inline.get("quant_algo") is None
    if from_config and from_file and not modelopt and str(from_config).upper() != str(from_file).upper():
        raise ModelError(
            f"two quantization configs disagree: {where} says {from_config!r}, hf_quant_config.json says {from_file!r}",
            hint="Find out which one describes the weights and delete the other.",
        )
    found = from_file or from_config
    return str(found) if found else None
