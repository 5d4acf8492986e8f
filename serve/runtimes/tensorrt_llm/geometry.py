"""What an engine's ``config.json`` says of it: limits, ranks and the shape of its KV pages. Nothing of TensorRT is loaded.

Keys and meanings are recorded in ``build/trtllm/upstream.json``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from roundhouse.errors import EngineError

__all__ = ["BuildLimits", "EngineGeometry", "ModelPart", "PluginChoices", "RankMapping", "read_geometry"]

_KV_BYTES = {"FP8": 1, "INT8": 1}
"""Bytes of an element, by ``kv_cache_quant_algo``; without one it is the model's own."""
_DTYPE_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}

Dtype = Literal["bfloat16", "float16", "float32"]


class _Keys(BaseModel):
    """Keys that are read; upstream's files have many more."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class RankMapping(_Keys):
    """How ranks share the model. ``rank = pp_rank * tp_size + tp_rank``."""

    tp_size: int = 1
    pp_size: int = 1
    cp_size: Literal[1] = 1
    pp_partition: tuple[int, ...] | None = None


class _Quantization(_Keys):
    kv_cache_quant_algo: Literal["FP8", "INT8"] | None = None


class ModelPart(_Keys):
    """``pretrained_config``."""

    dtype: Dtype
    logits_dtype: Dtype = "float32"
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int | None = None
    head_size: int | None = None
    mapping: RankMapping = RankMapping()
    quantization: _Quantization = _Quantization()


class PluginChoices(_Keys):
    """``plugin_config``: what the engine's attention can do."""

    tokens_per_block: int
    use_paged_context_fmha: bool = True
    context_fmha: bool = True
    remove_input_padding: Literal[True] = True
    multiple_profiles: Literal[False] = False


class BuildLimits(_Keys):
    """``build_config``: the largest inputs the engine takes. Kinds of engine that the runtime does not feed are no such."""

    max_input_len: int
    max_seq_len: int
    max_batch_size: int
    max_num_tokens: int
    max_beam_width: Literal[1] = 1
    max_draft_len: Literal[0] = 0
    gather_context_logits: Literal[False] = False
    plugin_config: PluginChoices


class EngineGeometry(_Keys):
    """One engine of one or several ranks."""

    version: str = Field(min_length=1)
    """Of the TensorRT-LLM that built it."""
    pretrained_config: ModelPart
    build_config: BuildLimits

    @model_validator(mode="after")
    def _partition_is_whole(self) -> Self:
        mapping = self.pretrained_config.mapping
        partition = mapping.pp_partition
        if partition is not None and (len(partition) != mapping.pp_size or sum(partition) != self.layers):
            raise ValueError(f"pp_partition {list(partition)} does not share {self.layers} layers by {mapping.pp_size}")
        return self

    @property
    def layers(self) -> int:
        """Of the whole model."""
        return self.pretrained_config.num_hidden_layers

    @property
    def world_size(self) -> int:
        """Ranks, one GPU each."""
        return self.pretrained_config.mapping.tp_size * self.pretrained_config.mapping.pp_size

    @property
    def kv_heads(self) -> int:
        """Of one rank; where there are more ranks than heads, several keep the same one."""
        model = self.pretrained_config
        return -(-(model.num_key_value_heads or model.num_attention_heads) // model.mapping.tp_size)

    @property
    def head_dim(self) -> int:
        """Elements of a key or value head."""
        model = self.pretrained_config
        return model.head_size or model.hidden_size // model.num_attention_heads

    @property
    def kv_element_bytes(self) -> int:
        """Bytes of one element of a cached key or value."""
        algorithm = self.pretrained_config.quantization.kv_cache_quant_algo
        return _DTYPE_BYTES[self.pretrained_config.dtype] if algorithm is None else _KV_BYTES[algorithm]

    @property
    def page_tokens(self) -> int:
        """Tokens of a KV page."""
        return self.build_config.plugin_config.tokens_per_block

    @property
    def block_bytes(self) -> int:
        """Bytes of one rank's keys, or values, of one page in one layer."""
        return self.page_tokens * self.kv_heads * self.head_dim * self.kv_element_bytes

    @property
    def columns(self) -> int:
        """Pages of the longest sequence: the last dimension of its block offsets."""
        return math.ceil(self.build_config.max_seq_len / self.page_tokens)

    @property
    def padded_vocab(self) -> int:
        """Logits of a row: the vocabulary, rounded up to a multiple of ``tp_size``."""
        tp = self.pretrained_config.mapping.tp_size
        return -(-self.pretrained_config.vocab_size // tp) * tp

    @property
    def takes_chunks(self) -> bool:
        """Whether a prompt's attention reads what earlier steps wrote, as prompts in chunks and found prefixes need it."""
        plugins = self.build_config.plugin_config
        return plugins.use_paged_context_fmha and plugins.context_fmha


def read_geometry(config: Path) -> EngineGeometry:
    """Read an engine's ``config.json``.

    Raises:
        EngineError: it cannot be read, or is of an engine that this runtime does not feed; the key is named.
    """
    try:
        return EngineGeometry.model_validate_json(config.read_bytes())
    except OSError as error:
        raise EngineError(f"{config}: {error.strerror}", hint="Build the engine again.") from None
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(str(part) for part in problem["loc"])
        raise EngineError(
            f"{config} is of no engine that this version runs: {key or 'it'}: {problem['msg']}", hint="Build the engine again."
        ) from None
