"""KV-cache scales of a checkpoint: found under every name they go by, checked, and classified.

A cached row is stored as ``row / scale``. All scales at exactly 1.0 usually means that nobody
calibrated them; that, and their absence, is legal but worth a warning. Zero, negative, NaN and
non-scalar scales are errors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from roundhouse.errors import VerifyError

__all__ = ["KvScaleReport", "classify_kv_scales", "is_kv_scale_candidate", "is_scale"]

_ALIASES: tuple[tuple[str, tuple[Literal["k", "v"], ...]], ...] = (
    (r"self_attn\.k_scale", ("k",)),
    (r"self_attn\.v_scale", ("v",)),
    (r"self_attn\.kv_scale", ("k", "v")),
    (r"k_proj\.output_scale", ("k",)),
    (r"v_proj\.output_scale", ("v",)),
    (r"k_proj\.k_scale", ("k",)),
    (r"v_proj\.v_scale", ("v",)),
    (r"attention\.kv_cache_scaling_factor", ("k", "v")),
)
_LINEAR_SCALE = re.compile(r"\.(weight_scale|weight_scale_2|weight_scale_inv|input_scale|pre_quant_scale)$")
_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")


class KvScaleReport(BaseModel):
    """How the KV scales were found, and their values by layer (``[0.1, …]`` for k and for v)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: Literal["calibrated", "all 1.0", "absent", "not used"]
    k: tuple[float, ...] = ()
    v: tuple[float, ...] = ()
    unknown: tuple[str, ...] = ()
    """Tensors with "scale" in their name that no known convention explains."""

    @property
    def warning(self) -> str | None:
        """What the user should know, or None."""
        if self.state == "all 1.0":
            return "all KV scales are exactly 1.0: they look uncalibrated, and FP8 KV may be inaccurate"
        if self.state == "absent":
            return "the checkpoint has no KV scales: 1.0 is used, and FP8 KV may be inaccurate"
        return None


def scales_used(report: KvScaleReport, target: str) -> KvScaleReport:
    """The scales that a target's attention uses of those in the checkpoint.

    TensorRT-LLM's engines have one a layer, the larger of the two; its PyTorch backend uses none, which is 1.
    """
    if target == "torch" or not report.k:
        return report
    if target == "tensorrt":
        larger = tuple(max(pair) for pair in zip(report.k, report.v, strict=True))
        return report.model_copy(update={"k": larger, "v": larger})
    ones = (1.0,) * len(report.k)
    return report.model_copy(update={"state": "all 1.0", "k": ones, "v": ones})


def is_scale(name: str) -> bool:
    """Whether a tensor is a scale of some kind, by its name (``k_scale``, ``kv_cache_scaling_factor``)."""
    return "scal" in name.rpartition(".")[2]


def is_kv_scale_candidate(name: str) -> bool:
    """Whether a tensor may be a KV scale: a scale that is not a linear's."""
    return is_scale(name) and not _LINEAR_SCALE.search(name)


def classify_kv_scales(values: Mapping[str, Sequence[float] | float], *, layers: int, kv_cache: str) -> KvScaleReport:
    """Classify every tensor with "scale" in its name.

    Args:
        values: tensor name → its values: a number, or a flat sequence.
        layers: how many layers the model has.
        kv_cache: the recipe's ``kv_cache``; with ``bf16`` no scale is used.

    Raises:
        VerifyError: a scale is 0, negative, not finite or not a scalar, or a layer has none while others do.
    """
    by_tensor: dict[Literal["k", "v"], dict[int, float]] = {"k": {}, "v": {}}
    unknown = []
    for name, value in sorted(values.items()):
        kinds = _kinds(name)
        layer = _LAYER.search(name)
        if not kinds or layer is None:
            if is_kv_scale_candidate(name):
                unknown.append(name)
            continue
        for kind in kinds:
            by_tensor[kind][int(layer[1])] = _checked(name, value)
    if kv_cache != "fp8":
        return KvScaleReport(state="not used", unknown=tuple(unknown))
    if not by_tensor["k"] and not by_tensor["v"]:
        return KvScaleReport(state="absent", unknown=tuple(unknown))
    for kind, scales in by_tensor.items():
        missing = [layer for layer in range(layers) if layer not in scales]
        if missing:
            raise VerifyError(f"{kind} scales are missing for layers {missing}")
    k, v = (tuple(by_tensor[kind][layer] for layer in range(layers)) for kind in ("k", "v"))
    state: Literal["calibrated", "all 1.0"] = "all 1.0" if set(k) | set(v) == {1.0} else "calibrated"
    return KvScaleReport(state=state, k=k, v=v, unknown=tuple(unknown))


def _kinds(name: str) -> tuple[Literal["k", "v"], ...]:
    for pattern, kinds in _ALIASES:
        if re.search(rf"(?:^|\.){pattern}$", name):
            return kinds
    return ()


def _checked(name: str, value: Sequence[float] | float) -> float:
    values = list(value) if isinstance(value, Sequence) else [value]
    if len(values) != 1:
        raise VerifyError(f"{name} has {len(values)} values, expected one scalar")
    scale = float(values[0])
    if not math.isfinite(scale) or scale <= 0:
        raise VerifyError(f"{name} is {scale}; a KV scale must be a positive number")
    return scale
