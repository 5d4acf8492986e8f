"""Routed experts in a Hugging Face checkpoint, in the form that the model's class in TensorRT-LLM reads.

Any INT4 with groups makes them W4A8 there, and a class reads one of two forms of those (docs/tensorrt-llm.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..models.checkpoint import Checkpoint
from .hf_tensors import check_layout, check_linear
from .upstream import upstream

__all__ = ["check_experts", "is_expert"]

_INT4 = ("W4A16_AWQ", "W4A8_AWQ")
_GROUP = 128
_SCRIPTS_NAMES = {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"}
"""Upstream's script takes weights' names over from the checkpoint, and gives the scales of inputs these."""
_FLOATS = ("F32", "BF16", "F16")


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
        if form == "w4a8_custom":
            found += _check_input_scale(checkpoint, module)
            found = [
                f"{text}; {architecture} reads INT4 experts in the form of TensorRT-LLM's own script only" for text in found[:1]
            ]
        yield from found


def _check_input_scale(checkpoint: Checkpoint, module: str) -> Iterator[str]:
    """What of the scale of an expert's inputs is not as the custom form has it; the loader reads that of every expert."""
    expert, _, own = module.rpartition(".")
    # The loader renames before it reads, so either name will do.
    names = (f"{expert}.{_SCRIPTS_NAMES.get(own, own)}.input_scale", f"{module}.input_scale")
    name = next((name for name in names if name in checkpoint.tensors), None)
    if name is None:
        yield f"{names[0]} is missing"
        return
    tensor = checkpoint.tensors[name]
    if tensor.dtype not in _FLOATS or tensor.shape not in ((), (1,)):
        yield f"{name} is {tensor.dtype} of the shape {list(tensor.shape)}, not one number"
