"""Linears that TensorRT-LLM's PyTorch backend loads as one, and which of their scales are not alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["FUSED", "differing_scales", "partly_scaled"]

FUSED = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))
"""By their own names, in one module."""


def partly_scaled(tensors: Collection[str], modules: Iterable[str]) -> Iterator[str]:
    """FP8 linears of which some have an input scale and some have none: upstream would read memory that nothing was written to.

    Args:
        tensors: names of all tensors.
        modules: linears, by full name.
    """
    for parts in _fused(modules):
        having = [f"{part}.input_scale" in tensors for part in parts]
        if any(having) and not all(having):
            yield f"{_told(parts)}: some have an input_scale, some have none"


def differing_scales(tensors: Mapping[str, torch.Tensor], modules: Iterable[str], scales: Iterable[str]) -> Iterator[str]:
    """Linears that have one of these scales each, and not the same.

    Args:
        tensors: of the checkpoint, by name.
        modules: linears, by full name.
        scales: last names of tensors.
    """
    import torch

    for parts in _fused(modules):
        for scale in scales:
            names = [f"{part}.{scale}" for part in parts if f"{part}.{scale}" in tensors]
            if any(not torch.equal(tensors[names[0]], tensors[name]) for name in names[1:]):
                yield f"{_told(parts)} differ in {scale}"


def _fused(modules: Iterable[str]) -> Iterator[list[str]]:
    """The linears of each module that are loaded as one, as far as they are among these."""
    known = set(modules)
    for linears in FUSED:
        for first in sorted(name for name in known if name.endswith(f".{linears[0]}")):
            beside = first.removesuffix(linears[0])
            yield [beside + own for own in linears if beside + own in known]


def _told(parts: list[str]) -> str:
    names = ", ".join(part.rpartition(".")[2] for part in parts)
    return f"{names} of {parts[0].rpartition('.')[0]}"
