"""What a checkpoint says of its quantization, as TensorRT-LLM's PyTorch backend reads it.

``hf_quant_config.json`` counts where it is there, else ``quantization_config`` of ``config.json``
(``tensorrt_llm/_torch/model_config.py``, versions of late 2025 and early 2026 alike).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundhouse.errors import ModelError

from ..models.shape import InputQuantization
from .upstream import ValuesRecord, upstream

__all__ = ["ALGORITHMS", "HfQuantization", "read_hf_quantization"]

ALGORITHMS: dict[str, str | None] = {
    "bf16": None,
    "fp8": "FP8",
    "int4_awq": "W4A16_AWQ",
    "w4a8_awq": "W4A8_AWQ",
    "nvfp4": "NVFP4",
}
"""A recipe's ``weights`` → upstream's ``quant_algo``."""

_FILE, _CONFIG, _MIXED = "hf_quant_config.json", "config.json", "quant_cfg.json"
_BLOCKS = "FP8_BLOCK_SCALES"


@dataclass(frozen=True)
class HfQuantization:
    """The quantization of a checkpoint; ``algorithm`` is upstream's, or None for plain weights."""

    where: str
    """The file that says it."""
    algorithm: str | None = None
    kv_cache: str | None = None
    group_size: int | None = None
    excluded: tuple[str, ...] = ()
    """Names and wildcards of modules that are not quantized."""
    problems: tuple[str, ...] = ()
    """What upstream would not take of it."""

    def as_input(self) -> InputQuantization:
        """For those who ask which modules are excluded."""
        return InputQuantization(name=self.algorithm or "", format=None, excluded=self.excluded)


def read_hf_quantization(folder: Path) -> HfQuantization:
    """Read what a checkpoint folder says.

    Raises:
        ModelError: a file cannot be read.
    """
    if (folder / _FILE).exists():
        return _from_file(folder)
    given = _read(folder / _CONFIG).get("quantization_config")
    return _from_config(given) if isinstance(given, dict) else HfQuantization(where=_CONFIG)


def _from_file(folder: Path) -> HfQuantization:
    given = _read(folder / _FILE).get("quantization")
    if not isinstance(given, dict):
        return HfQuantization(where=_FILE, problems=(f"{_FILE} has no `quantization`",))
    algorithm = _BLOCKS if given.get("quant_algo") == "fp8_pb_wo" else given.get("quant_algo")
    record = upstream().records["tensorrt_llm.quantization.mode.QuantAlgo"]
    known = record.values if isinstance(record, ValuesRecord) else ()
    problems = []
    if algorithm is not None and algorithm not in known:
        problems.append(f"{_FILE}: quant_algo {algorithm} is none of TensorRT-LLM {upstream().version}'s")
    if algorithm == "MIXED_PRECISION":
        problems += _about_layers(folder, given)
    return HfQuantization(
        where=_FILE,
        algorithm=algorithm,
        kv_cache=given.get("kv_cache_quant_algo"),
        group_size=given.get("group_size"),
        excluded=tuple(given.get("exclude_modules") or ()),
        problems=tuple(problems),
    )


def _about_layers(folder: Path, given: dict[str, Any]) -> list[str]:
    """What mixed precision lacks: its layers, and a key that must be there even where it is null."""
    both = given | (_read(folder / _MIXED) if (folder / _MIXED).exists() else {})
    found = []
    if "kv_cache_quant_algo" not in both:
        found.append(f"{_FILE}: MIXED_PRECISION needs the key kv_cache_quant_algo, null where the cache has 16 bits")
    if not isinstance(both.get("quantized_layers"), dict) or not both["quantized_layers"]:
        found.append(f"{_FILE}: MIXED_PRECISION needs quantized_layers, there or in {_MIXED}")
    return found


def _from_config(given: dict[str, Any]) -> HfQuantization:
    """Of what ``config.json`` may say, upstream reads FP8 in blocks, MXFP4, and compressed-tensors of 8 bits."""
    method, where = given.get("quant_method"), f"{_CONFIG}: quantization_config"
    excluded = tuple(given.get("modules_to_not_convert") or given.get("ignore") or ())
    if method == "fp8" and given.get("weight_block_size"):
        return HfQuantization(where=where, algorithm=_BLOCKS, group_size=128, excluded=excluded)
    if method == "mxfp4":
        return HfQuantization(where=where, algorithm="W4A16_MXFP4", group_size=32, excluded=excluded)
    if method == "compressed-tensors" and _bits(given) == 8:
        return HfQuantization(where=where, algorithm="FP8_PER_CHANNEL_PER_TOKEN", excluded=excluded)
    return HfQuantization(
        where=where,
        problems=(f"{where} says {method}, and there is no {_FILE}: TensorRT-LLM would take the weights for plain ones",),
    )


def _bits(given: dict[str, Any]) -> object:
    """``num_bits`` of the first group's weights, the only one that upstream looks at."""
    place: object = given
    for key in ("config_groups", "group_0", "weights", "num_bits"):
        place = place.get(key) if isinstance(place, dict) else None
    return place


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise ModelError(f"{path} holds no object")
    return found
