"""What an input is already quantized to, from the two places that may say so."""

from __future__ import annotations

import re
from typing import Any, Literal

from roundhouse.errors import ModelError

from .config_reader import ConfigReader
from .shape import InputQuantization, Kernel

__all__ = ["read_quantization"]

_EXCLUDE_KEYS = ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers")
_GROUP_KEYS = ("group_size", "q_group_size")
_INT4_KERNELS: dict[str, Kernel] = {
    "awq": "int4_awq",
    "int4_awq": "int4_awq",
    "w4a16_awq": "int4_awq",
    "w4a8_awq": "w4a8_awq",
    "gptq": "gptq",
    "compressed-tensors": "compressed_int4",
}
"""Names of quantizations to INT4, and whose kernels each needs."""

_Format = Literal["fp8", "fp8_block", "int4", "nvfp4", "mxfp4"]
_Meaning = tuple[_Format | None, int | None, int | None]
"""Format, group size and bits; None for what is not known."""
_UNKNOWN: _Meaning = (None, None, None)
_FP4: dict[str, _Meaning] = {"mxfp4": ("mxfp4", 32, 4), "nvfp4": ("nvfp4", 16, 4)}


def read_quantization(reader: ConfigReader, quant_config: dict[str, Any] | None) -> InputQuantization | None:
    """What the weights are quantized to, or None for plain ones.

    Args:
        reader: ``config.json``, which may hold a ``quantization_config``.
        quant_config: the parsed ``hf_quant_config.json``, or None.

    Raises:
        ModelError: ``config.json`` and ``hf_quant_config.json`` disagree; both are shown. Or a key has a wrong type.
    """
    inline = _inline(reader)
    in_file = _details(ConfigReader(quant_config or {}, "hf_quant_config.json"), "quantization")
    from_config, from_file = _read(inline), _read(in_file)
    if from_config is None or from_file is None:
        return from_file or from_config
    both = (from_config, from_file)
    bare = from_config.name.lower() == "modelopt"  # it says who quantized, the file says to what
    names, kernels = {each.name.upper() for each in both}, {each.kernel for each in both}
    same = len(names if None in kernels else kernels) == 1
    groups = {each.group_size for each in both} - {None}
    if not (bare or same) or len(groups) > 1:
        raise ModelError(
            f"two quantization configs disagree: {reader.where} says {_told(from_config)}, "
            f"hf_quant_config.json says {_told(from_file)}",
            hint="Find out which one describes the weights and delete the other.",
        )
    return from_file


def _told(found: InputQuantization) -> str:
    return repr(found.name) + (f" with groups of {found.group_size}" if found.group_size else "")


def _inline(reader: ConfigReader) -> ConfigReader:
    """``quantization_config``; some exports of ModelOpt nest their own ``quantization`` in it once more."""
    found = _details(reader, "quantization_config")
    nested = _details(found, "quantization")
    return nested if nested.keys() else found


def _details(reader: ConfigReader, key: str) -> ConfigReader:
    return ConfigReader(reader.object(key), f"{reader.where}: {key}")


def _read(details: ConfigReader) -> InputQuantization | None:
    name = details.text("quant_algo") or details.text("quant_method")
    only_cache = details.peek("kv_cache_scheme") is not None and details.peek("config_groups") is None
    if not name or (name.lower() == "modelopt" and only_cache):
        return None
    excluded = next((texts for key in _EXCLUDE_KEYS if (texts := _patterns(details, key))), ())
    form, group, bits = _meaning(name.lower(), details)
    kernel = _kernel(name.lower(), form, details)
    return InputQuantization(name=name, format=form, kernel=kernel, group_size=group, bits=bits, excluded=excluded)


def _kernel(name: str, form: _Format | None, details: ConfigReader) -> Kernel | None:
    if form != "int4":
        return form
    groups = _details(details, "config_groups")
    if name == "compressed-tensors" and any(_details(groups, key).object("input_activations") for key in groups.keys()):  # noqa: SIM118
        return None  # INT4 weights times quantized activations: no format that is known here
    return _INT4_KERNELS[name]


def _patterns(details: ConfigReader, key: str) -> tuple[str, ...]:
    for pattern in details.texts(key):
        try:
            re.compile(pattern.removeprefix("re:") if pattern.startswith("re:") else "")
        except re.error as error:
            raise details.error(f"{key} has the pattern {pattern!r}, which is no regular expression: {error}") from None
    return details.texts(key)


def _meaning(name: str, details: ConfigReader) -> _Meaning:
    """The planner's name for a quantization, its group size where it has one, and bits a weight."""
    if name == "compressed-tensors":
        groups = {_group_meaning(_details(_details(details, "config_groups"), key)) for key in details.object("config_groups")}
        return groups.pop() if len(groups) == 1 else _UNKNOWN
    if name == "fp8":
        return _fp8(details.numbers("weight_block_size"))
    if name == "fp8_block_scales":
        return _fp8((128, 128))
    if name in _FP4:
        return _FP4[name]
    if name in _INT4_KERNELS:
        return _int(details.optional_count("bits") or details.optional_count("w_bit") or 4, _group_size(details, default=128))
    return _UNKNOWN


def _group_meaning(group: ConfigReader) -> _Meaning:
    """One group of a compressed-tensors config."""
    weights = _details(group, "weights")
    kind, bits, size = weights.text("type"), weights.optional_count("num_bits"), _group_size(weights)
    if kind == "int":
        return _int(bits, size)
    if kind == "float" and bits == 4:
        return _FP4["nvfp4"] if size == 16 else (None, None, 4)
    if kind == "float" and bits == 8:
        return _fp8(weights.numbers("block_structure"))
    return _UNKNOWN


def _fp8(block: tuple[int, ...]) -> _Meaning:
    if not block:
        return "fp8", None, 8
    return ("fp8_block", 128, 8) if block == (128, 128) else (None, None, 8)


def _int(bits: int | None, group: int | None) -> _Meaning:
    return ("int4", group, 4) if bits == 4 and group else (None, None, bits)


def _group_size(details: ConfigReader, default: int | None = None) -> int | None:
    """How many inputs share a scale; None for -1: a whole row does."""
    key = next((key for key in _GROUP_KEYS if details.peek(key) is not None), None)
    if key is None:
        return default
    return None if details.peek(key) == -1 else details.optional_count(key)
