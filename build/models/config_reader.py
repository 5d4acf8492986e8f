"""Typed reading of one JSON object, remembering what was read."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from roundhouse.errors import ModelError

__all__ = ["ConfigReader"]

_IRRELEVANT = frozenset({
    "attention_dropout", "auto_map", "aux_loss_alpha", "boi_token_index", "bos_token_id", "cache_implementation", "dropout",
    "embd_pdrop", "eoi_token_index", "eos_token_id", "ep_size", "hidden_act", "hidden_activation", "id2label",
    "image_token_index", "initializer_range", "is_decoder", "is_encoder_decoder", "label2id", "max_length", "model_max_length",
    "norm_topk_prob", "output_attentions", "output_hidden_states", "output_router_logits", "pad_token_id", "pretraining_tp",
    "problem_type", "resid_pdrop", "return_dict", "rms_norm_eps", "rope_interleave", "rope_theta", "rope_local_base_freq",
    "router_aux_loss_coef", "router_jitter_noise", "routed_scaling_factor", "scoring_func", "seq_aux", "tokenizer_class",
    "topk_group", "topk_method", "n_group", "transformers_version", "unsloth_fixed", "use_cache",
    "partial_rotary_factor", "index_share_for_mtp_iteration",
    "num_local_experts_per_tok", "image_token_id", "video_token_id", "media_placeholder_token_id", "chunk_size_feed_forward",
    "is_llama_config", "query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping", "swiglu_alpha",
    "swiglu_limit", "experts_per_token", "initial_context_length", "qk_head_dim", "indexer_rope_interleave",
    "moe_router_dtype", "layer_norm_epsilon",
})  # fmt: skip
"""Keys that change neither bytes nor legality: not worth a word to the user. Nor are those that begin with ``_``."""

_MOST = 10**12
"""No number of a model is larger; whoever writes one has made a mistake, and lists of that length must not be made."""


class ConfigReader:
    """Reads one config; an absent and a null key are the same thing."""

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        self._config, self.where = config, where
        self._read: set[str] = set()

    def keys(self) -> list[str]:
        """Every key of the config."""
        return list(self._config)

    def peek(self, key: str) -> Any:
        """A value, without counting it as read."""
        return self._config.get(key)

    def value(self, key: str) -> Any:
        """A value as it stands, or None."""
        self._read.add(key)
        return self._config.get(key)

    def unread(self) -> tuple[str, ...]:
        """Keys with a value that nobody asked for and that are not known to be irrelevant."""
        silent = self._read | _IRRELEVANT
        return tuple(sorted(k for k, v in self._config.items() if k not in silent and k[:1] != "_" and v not in (None, False)))

    def error(self, message: str) -> ModelError:
        """The error for a config that cannot be right."""
        return ModelError(f"{self.where}: {message}", hint="Compare it with the config.json that the model was published with.")

    def wrong(self, key: str, expected: str) -> ModelError:
        """The error for a value that is something else than ``expected``."""
        return self.error(f"{key} is {reprlib.repr(self._config.get(key))}, expected {expected}")

    def optional_text(self, key: str) -> str | None:
        """A string, or None when it is absent."""
        value = self.value(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, "text")
        return value

    def text(self, key: str) -> str:
        """A string; the empty one when it is absent."""
        return self.optional_text(key) or ""

    def optional_flag(self, key: str) -> bool | None:
        """A boolean, or None when it is absent."""
        value = self.value(key)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def flag(self, key: str, *, default: bool = False) -> bool:
        """A boolean."""
        value = self.optional_flag(key)
        return default if value is None else value

    def object(self, key: str) -> dict[str, Any]:
        """An object; the empty one when it is absent."""
        value = self.value(key)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return value or {}

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings; the empty one when it is absent."""
        value = self.value(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.wrong(key, "a list of names")
        return tuple(value)

    def names(self, key: str, *, length: int) -> tuple[str, ...] | None:
        """A list of one name a layer, or None when it is absent."""
        if self.value(key) is None:
            return None
        found = self.texts(key)
        if len(found) != length:
            raise self.error(f"{key} names {len(found)} layers, the model has {length}")
        return found

    def numbers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers; the empty one when it is absent."""
        value = self.value(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(_is_whole(number) for number in value):
            raise self.wrong(key, "a list of whole numbers")
        return tuple(value)

    def optional_size(self, key: str) -> int | None:
        """A whole number from 0 on, or None when it is absent."""
        return self._number(key, 0, "a whole number")

    def optional_count(self, key: str) -> int | None:
        """A whole number from 1 on, or None when it is absent."""
        return self._number(key, 1, "a positive whole number")

    def count(self, key: str) -> int:
        """A whole number from 1 on.

        Raises:
            ModelError: it is absent, null or something else.
        """
        value = self.optional_count(key)
        if value is None:
            raise ModelError(f"{self.where} has no {key}", hint="Only configs of decoder-only models are read.")
        return value

    def _number(self, key: str, least: int, expected: str) -> int | None:
        value: int | None = self.value(key)
        if value is not None and not (_is_whole(value) and least <= value <= _MOST):
            raise self.wrong(key, expected if not _is_whole(value) or value < least else f"{expected} up to {_MOST:,}")
        return value


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
