"""Typed reading of one ``config.json``, remembering what was read."""

from __future__ import annotations

from typing import Any

from roundhouse.errors import ModelError

__all__ = ["ConfigReader"]

_IRRELEVANT = frozenset({
    "_name_or_path", "attention_dropout", "auto_map", "aux_loss_alpha", "bos_token_id", "cache_implementation", "dropout",
    "embd_pdrop", "eos_token_id", "ep_size", "hidden_act", "hidden_activation", "id2label", "initializer_range", "is_decoder",
    "is_encoder_decoder", "label2id", "max_length", "mlp_bias", "model_max_length", "norm_topk_prob", "output_attentions",
    "output_hidden_states", "output_router_logits", "pad_token_id", "pretraining_tp", "problem_type", "resid_pdrop",
    "return_dict", "rms_norm_eps", "rope_interleave", "rope_theta", "rope_local_base_freq", "router_aux_loss_coef",
    "router_jitter_noise", "routed_scaling_factor", "scoring_func", "seq_aux", "tokenizer_class", "topk_group", "topk_method",
    "n_group", "transformers_version", "unsloth_fixed", "use_cache", "vision_config", "num_local_experts_per_tok",
    "image_token_id", "video_token_id", "media_placeholder_token_id", "chunk_size_feed_forward", "is_llama_config",
    "query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping", "swiglu_limit", "experts_per_token",
    "initial_context_length", "qk_head_dim", "indexer_rope_interleave", "moe_router_dtype", "layer_norm_epsilon",
})  # fmt: skip
"""Keys that change neither bytes nor legality: not worth a word to the user."""


class ConfigReader:
    """Reads one config; an absent and a null key are the same thing."""

    def __init__(self, config: dict[str, Any], where: str) -> None:
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
        return tuple(sorted(k for k, v in self._config.items() if k not in self._read | _IRRELEVANT and v not in (None, False)))

    def text(self, key: str) -> str:
        """A string; the empty one when it is absent."""
        return str(self.value(key) or "")

    def flag(self, key: str, *, default: bool = False) -> bool:
        """A boolean."""
        value = self.value(key)
        if value is not None and not isinstance(value, bool):
            raise ModelError(f"{self.where}: {key} is {value!r}, expected true or false")
        return default if value is None else value

    def object(self, key: str) -> dict[str, Any]:
        """An object; the empty one when it is absent."""
        value = self.value(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise ModelError(f"{self.where}: {key} is {value!r}, expected an object")
        return value

    def names(self, key: str, *, length: int) -> list[str] | None:
        """A list of one name a layer, or None when it is absent."""
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise ModelError(f"{self.where}: {key} is not a list of names")
        if len(value) != length:
            raise ModelError(f"{self.where}: {key} names {len(value)} layers, the model has {length}")
        return value

    def numbers(self, key: str) -> list[int]:
        """A list of whole numbers; the empty one when it is absent."""
        value = self.value(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(number, int) for number in value):
            raise ModelError(f"{self.where}: {key} is not a list of whole numbers")
        return value

    def optional_size(self, key: str) -> int | None:
        """A whole number from 0 on, or None when it is absent."""
        value = self.value(key)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ModelError(f"{self.where}: {key} is {value!r}, expected a whole number")
        return value

    def optional_count(self, key: str) -> int | None:
        """A whole number from 1 on, or None when it is absent."""
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ModelError(f"{self.where}: {key} is {value!r}, expected a positive whole number")
        return value

    def count(self, key: str) -> int:
        """A whole number from 1 on.

        Raises:
            ModelError: it is absent, null or something else.
        """
        value = self.optional_count(key)
        if value is None:
            raise ModelError(f"{self.where} has no {key}", hint="Only configs of decoder-only models are read.")
        return value
