"""What an input is already quantized to, from the two places that may say so."""

from __future__ import annotations

from typing import Any

from roundhouse.errors import ModelError

from .config_reader import ConfigReader
from .shape import InputQuantization

__all__ = ["read_quantization"]

_EXCLUDE_KEYS = ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers")


def read_quantization(reader: ConfigReader, quant_config: dict[str, Any] | None) -> InputQuantization | None:
    """What the weights are quantized to, or None for plain ones.

    Raises:
        ModelError: ``config.json`` and ``hf_quant_config.json`` disagree; both are shown.
    """
    inline = reader.object("quantization_config")
    from_config = inline.get("quant_algo") or inline.get("quant_method")
    in_file = ConfigReader(quant_config or {}, "hf_quant_config.json").object("quantization")
    from_file = in_file.get("quant_algo")
    modelopt = inline.get("quant_method") == "modelopt" and inline.get("quant_algo") is None
    if from_config and from_file and not modelopt and str(from_config).upper() != str(from_file).upper():
        raise ModelError(
            f"two quantization configs disagree: {reader.where} says {from_config!r}, hf_quant_config.json says {from_file!r}",
            hint="Find out which one describes the weights and delete the other.",
        )
    found = from_file or from_config
    if not found:
        return None
    details = in_file or inline
    kind, group = _format(str(found), details)
    excluded = next((details[key] for key in _EXCLUDE_KEYS if details.get(key)), [])
    return InputQuantization(name=str(found), format=kind, group_size=group, excluded=tuple(map(str, excluded)))


def _format(name: str, details: dict[str, Any]) -> tuple[Any, int | None]:
    """The planner's name for a quantization, and its group size where it has one."""
    name = name.lower()
    if name == "compressed-tensors":
        groups = details.get("config_groups") or {}
        weights = next((group.get("weights") or {} for group in groups.values()), {})
        bits, group, kind = weights.get("num_bits"), weights.get("group_size"), weights.get("type")
        if (kind, bits) == ("int", 4) and group:
            return "int4", int(group)
        if (kind, bits) == ("float", 4):
            return "nvfp4", 16
        return ("fp8", None) if (kind, bits) == ("float", 8) else (None, None)
    if name == "fp8" and details.get("weight_block_size"):
        return "fp8_block", 128 if list(details["weight_block_size"]) == [128, 128] else None
    if name in ("fp8", "mxfp4", "nvfp4"):
        return name, {"mxfp4": 32, "nvfp4": 16}.get(name)
    if name in ("awq", "gptq", "w4a16_awq", "w4a8_awq", "int4_awq") and (details.get("bits") or 4) == 4:
        return "int4", int(details.get("group_size") or details.get("q_group_size") or 128)
    return None, None
