"""How a GGUF file says that rotary positions are stretched, in the words of ``config.json``.

Linear and YaRN scaling are metadata. Llama 3's is not: its converter writes, for each frequency, the number that it is
divided by (``rope_freqs.weight``), and what these numbers were made from is found again here.
"""

from __future__ import annotations

import math
from typing import Any

from .gguf_file import GgufFile, gguf_error

__all__ = ["ROPE_FACTORS", "rope_parameters"]

ROPE_FACTORS = "rope_freqs.weight"
"""No weight of the model: Llama 3's scaling, one number for each pair of rotated elements."""

_BASE = 10_000.0
_KNOWN = ("dimension_count", "freq_base", "scaling.type", "scaling.factor", "scaling.original_context_length")
_TRAINING_NOTE = "scaling.finetuned"
_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
"""What every Llama 3.1, 3.2 and 3.3 has; they differ in ``factor`` alone."""
_HINT = "Give the model's Hugging Face folder: its config.json says how positions are scaled."


def rope_parameters(file: GgufFile, architecture: str, head_dim: int, max_positions: int) -> dict[str, Any]:
    """The ``rope_parameters`` of a file's ``config.json``.

    Args:
        file: the header.
        architecture: as the file calls it; the start of its keys.
        head_dim: rotated elements of a head.
        max_positions: the file's context length, which YaRN stretches when no other length is told.

    Raises:
        ModelError: positions are scaled in a way that is not known; the answers would be another model's.
    """
    prefix = f"{architecture}.rope."
    told: dict[str, Any] = {key.removeprefix(prefix): value for key, value in file.metadata.items() if key.startswith(prefix)}
    kind, base = told.get("scaling.type", "none"), told.get("freq_base", _BASE)
    factors = file.tensors.get(ROPE_FACTORS)
    strange = sorted(prefix + key for key in told.keys() - {*_KNOWN, _TRAINING_NOTE})
    if kind not in ("none", "linear", "yarn") or (factors is not None and kind != "none"):
        strange.append(f"{prefix}scaling.type {kind!r}" + (f" beside {ROPE_FACTORS}" if factors else ""))
    if not isinstance(base, float) or not 1 < base < math.inf:
        strange.append(f"{prefix}freq_base {base!r}")
    if strange:
        raise gguf_error(file.path, f"rotary positions are told of in a way not known here: {', '.join(strange)}", hint=_HINT)
    if factors is not None:
        return _llama3(file, file.floats(factors), base, head_dim)
    if kind == "none":
        return {"rope_type": "default", "rope_theta": base}
    factor = told.get("scaling.factor")
    if not isinstance(factor, float) or not 1 <= factor < math.inf:
        raise gguf_error(file.path, f"{prefix}scaling.factor is {factor!r}, expected a number from 1 on", hint=_HINT)
    scaled: dict[str, Any] = {"rope_type": kind, "rope_theta": base, "factor": factor}
    if kind == "yarn":
        scaled["original_max_position_embeddings"] = told.get("scaling.original_context_length", max_positions)
    return scaled


def _llama3(file: GgufFile, factors: tuple[float, ...], base: float, head_dim: int) -> dict[str, Any]:
    """Llama 3's scaling: the largest divisor is ``factor``, and all the others must follow from it."""
    factor = max(factors, default=1.0)
    fits = len(factors) == head_dim // 2 and 1 <= factor < math.inf
    fits = fits and all(_close(each, _divisor(base ** (2 * pair / head_dim), factor)) for pair, each in enumerate(factors))
    if not fits:
        raise gguf_error(file.path, f"{ROPE_FACTORS} scales positions in another way than Llama 3 does", hint=_HINT)
    if factor == 1:
        return {"rope_type": "default", "rope_theta": base}
    return {"rope_type": "llama3", "rope_theta": base, "factor": factor, **_LLAMA3}


def _close(number: float, expected: float) -> bool:
    return math.isclose(number, expected, rel_tol=1e-3)  # converters compute in float32


def _divisor(inverse_frequency: float, factor: float) -> float:
    """What Llama 3 divides a frequency by: long waves by ``factor``, short ones by 1, those between by a blend."""
    low, high, context = _LLAMA3.values()
    turns = context / (2 * math.pi * inverse_frequency)
    kept = min(1.0, max(0.0, (turns - low) / (high - low)))
    return 1 / ((1 - kept) / factor + kept)
