"""What TensorRT-LLM's PyTorch backend would make of a checkpoint: its quantization config and its tensors.

Upstream reads what is quantized from ``hf_quant_config.json``, and fails late or not at all where tensors are not what it
says: a ``pre_quant_scale`` that it does not look for is lost without a word (docs/tensorrt-llm.md). What it looks for is in
the record, under ``hf_checkpoint``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..models.checkpoint import Checkpoint, read_checkpoint
from ..models.exclusions import exclusion
from ..models.parameters import part_and_split
from ..planner.plan import Plan
from ..weights import Tensors
from .hf_experts import check_experts, is_expert
from .hf_fused import differing_scales, partly_scaled
from .hf_quantization import ALGORITHMS, HfQuantization, read_hf_quantization
from .hf_tensors import check_linear

__all__ = ["check_hf_checkpoint", "rounded_anew"]

_LINEARS = ("attention", "mlp", "shared_expert", "routed_expert")
_W4A8_SCALES = ("input_scale", "weight_scale_2", "pre_quant_scale")
"""Of linears that are loaded as one: upstream insists on equal ones, or takes the larger."""


def check_hf_checkpoint(folder: Path, plan: Plan) -> list[str]:
    """Everything about a checkpoint that the PyTorch backend would not read, or read as something else.

    Args:
        folder: of the checkpoint. Its headers are read, and single scales of W4A8 linears.
        plan: of its engine.

    Returns:
        A sentence for each module or key; none when all is as upstream expects it.

    Raises:
        ModelError: the folder's files cannot be read.
    """
    checkpoint, found = read_checkpoint(folder), read_hf_quantization(folder)
    problems = [*found.problems, *_about_config(found, plan)]
    if problems or found.algorithm in (None, "MIXED_PRECISION"):
        return problems
    return [*_about_tensors(checkpoint, _linears(checkpoint, found, plan.shape.layers), found, plan)]


def rounded_anew(folder: Path, plan: Plan) -> str | None:
    """What to say of FP8 linears that upstream rounds to a common scale when it loads them as one, or None."""
    checkpoint, found = read_checkpoint(folder), read_hf_quantization(folder)
    if found.algorithm != "FP8":
        return None
    linears = _linears(checkpoint, found, plan.shape.layers)
    differing = [*differing_scales(Tensors(folder), [m for m in linears if not is_expert(m)], ("weight_scale",))]
    if not differing:
        return None
    return (
        f"FP8 linears that TensorRT-LLM loads as one have scales of their own ({len(differing)} times, as {differing[0]}): it "
        "rounds them anew to the largest, so what runs is a little less exact than what was measured"
    )


def _about_config(found: HfQuantization, plan: Plan) -> Iterator[str]:
    """Whether the config says what the recipe asks for."""
    recipe = plan.recipe
    if recipe.weights != "as_is" and found.algorithm != ALGORITHMS[recipe.weights]:
        yield f"{found.where} says quant_algo {found.algorithm}, the recipe asks for {recipe.weights}"
    if plan.group_size is not None and found.group_size != plan.group_size:
        yield f"{found.where} says group_size {found.group_size}, planned are groups of {plan.group_size}"
    wanted = "FP8" if recipe.kv_cache == "fp8" else None
    # Where the checkpoint says nothing, upstream takes the type that the arguments say; what it does say is not changed.
    if found.kv_cache is not None and found.kv_cache != wanted:
        yield f"{found.where} says kv_cache_quant_algo {found.kv_cache}, the recipe's kv_cache is {recipe.kv_cache}"


def _about_tensors(checkpoint: Checkpoint, linears: list[str], found: HfQuantization, plan: Plan) -> Iterator[str]:
    """Whether every linear has the tensors that the config promises, in the form that upstream reads."""
    algorithm = found.algorithm or ""
    plain = [module for module in linears if not is_expert(module)]
    for module in plain:
        yield from check_linear(checkpoint, module, algorithm, found.group_size)
    if algorithm == "FP8":
        yield from partly_scaled(checkpoint.tensors.keys(), plain)
    yield from check_experts(checkpoint, [m for m in linears if is_expert(m)], algorithm, plan.shape.architecture)
    if algorithm == "W4A8_AWQ":
        yield from differing_scales(Tensors(checkpoint.folder), linears, _W4A8_SCALES)


def _linears(checkpoint: Checkpoint, found: HfQuantization, layers: int) -> list[str]:
    """Linears of the model's layers that are quantized, by full name: those for multi-token prediction are not loaded."""
    excluded, modules = exclusion(found.as_input()), []
    for name, tensor in checkpoint.tensors.items():
        known, words = part_and_split(name), name.split(".")
        if not name.endswith(".weight") or len(tensor.shape) != 2 or known is None or known[0] not in _LINEARS:
            continue
        if "layers" in words and int(words[words.index("layers") + 1]) < layers and not excluded(name):
            modules.append(name.removesuffix(".weight"))
    return modules
