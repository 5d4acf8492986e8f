"""INT4 experts in a Hugging Face checkpoint: in the form that the model's class in TensorRT-LLM reads, and with scales alike.

Any INT4 with groups makes routed experts W4A8 there. A class reads one of two forms; of gate and up it takes the larger of
each scale for both, so that only equal ones mean what the checkpoint says (docs/tensorrt-llm.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ..models.checkpoint import Checkpoint
from ..weights import Tensors
from .hf_tensors import FUSED, check_layout, check_linear
from .upstream import upstream

if TYPE_CHECKING:
    import torch

__all__ = ["check_equal_scales", "check_experts", "is_expert"]

_INT4 = ("W4A16_AWQ", "W4A8_AWQ")
_GROUP = 128


def is_expert(module: str) -> bool:
    """Whether a module is part of a routed expert."""
    return ".experts." in module


def check_experts(checkpoint: Checkpoint, modules: Iterable[str], algorithm: str, architecture: str) -> Iterator[str]:
    """What the model's class would not read of its routed experts.

    Args:
        checkpoint: its tensors, by name.
        modules: the experts' linears, by full name.
        algorithm: upstream's ``quant_algo``.
        architecture: the model's class.
    """
    record = upstream().hf_checkpoint
    form = record.w4a8_mode_of.get(architecture, "vanilla")
    for module in modules:
        if algorithm not in _INT4:
            yield from check_linear(checkpoint, module, algorithm, None)
            continue
        layouts = {name: layout for name, layout in record.w4a8_experts[form].items() if not layout.of.endswith("{w1,w2,w3}")}
        found = list(check_layout(checkpoint, module, layouts, _GROUP))
        if found and form == "w4a8_custom":
            found = [f"{found[0]}; {architecture} reads INT4 experts in the form of TensorRT-LLM's own script only"]
        yield from found


def check_equal_scales(folder_tensors: Mapping[str, torch.Tensor] | Tensors, modules: Iterable[str]) -> Iterator[str]:
    """W4A8 linears that are loaded as one, with scales that differ: upstream insists on equal ones, or takes the larger."""
    import torch

    known = set(modules)
    for linears in FUSED:
        for first in sorted(name for name in known if name.endswith(f".{linears[0]}")):
            parts = [first.removesuffix(linears[0]) + own for own in linears]
            for scale in ("input_scale", "weight_scale_2", "pre_quant_scale"):
                names = [f"{part}.{scale}" for part in parts if f"{part}.{scale}" in folder_tensors]
                if any(not torch.equal(folder_tensors[names[0]], folder_tensors[name]) for name in names[1:]):
                    yield f"{', '.join(linears)} of {first.rpartition('.')[0]} differ in {scale}"
