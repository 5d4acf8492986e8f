"""The language model's part of a ``config.json``: beside a vision tower it is nested, and families leave numbers out."""

from __future__ import annotations

from typing import Any

from roundhouse.errors import ModelError

from .config_reader import ConfigReader

__all__ = ["language_model_config"]

_OUTER_KEYS = ("architectures", "model_type", "vision_config", "audio_config")
_SHARED_KEYS = ("dtype", "torch_dtype", "quantization_config", "tie_word_embeddings", "other_params")

_LEFT_OUT = {
    "gemma3_text": {
        "head_dim": 256,
        "max_position_embeddings": 131_072,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "vocab_size": 262_208,
    },
}
"""Numbers that published configs of a family leave out, because the family's own defaults hold."""


def language_model_config(config: dict[str, Any], where: str) -> tuple[dict[str, Any], str]:
    """The language model's part of a config, and its family (its own ``model_type``).

    Models with a vision tower nest the language model; the outer architecture and type are kept.

    Raises:
        ModelError: both levels have a ``quantization_config`` and they differ, or what is nested is no object.
    """
    outer = ConfigReader(config, where)
    if config.get("hidden_size") is not None or config.get("text_config") is None:
        return _completed(config, outer.text("model_type"))
    inner = ConfigReader(outer.object("text_config"), f"{where}: text_config")
    both = outer.object("quantization_config"), inner.object("quantization_config")
    if all(both) and both[0] != both[1]:
        raise ModelError(
            f"{where} has two quantization_config that disagree, one of them in text_config",
            hint="Find out which one describes the weights and delete the other.",
        )
    kept = {key: config[key] for key in _OUTER_KEYS if config.get(key) is not None}
    shared = {key: config[key] for key in _SHARED_KEYS if config.get(key) is not None and inner.peek(key) is None}
    return _completed({**outer.object("text_config"), **kept, **shared}, inner.text("model_type") or outer.text("model_type"))


def _completed(config: dict[str, Any], family: str) -> tuple[dict[str, Any], str]:
    left_out = {key: value for key, value in _LEFT_OUT.get(family, {}).items() if config.get(key) is None}
    return {**config, **left_out}, family
