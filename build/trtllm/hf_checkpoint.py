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
from .hf_experts import check_equal_scales, check_experts, is_expert
from .hf_quantization import ALGORITHMS, HfQuantization, read_hf_quantization
from .hf_tensors import check_fused, check_linear

__all__ = ["check_hf_checkpoint"]

_LINEARS = ("attention", "mlp", "shared_expert", "routed_expert")


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
    excluded = exclusion(found.as_input())
    linears = [module for module in _linears(checkpoint, plan.shape.layers) if not excluded(f"{module}.weight")]
    return [*_about_tensors(checkpoint, linears, found, plan)]


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
    yield from check_fused(checkpoint, plain, algorithm)
    yield from check_experts(checkpoint, [m for m in linears if is_expert(m)], algorithm, plan.shape.architecture)
    if algorithm == "W4A8_AWQ":
        yield from check_equal_scales(Tensors(checkpoint.folder), linears)


def _linears(checkpoint: Checkpoint, layers: int) -> Iterator[str]:
    """Linears of the model's layers, by full name: those for multi-token prediction are not loaded."""
    for name, tensor in checkpoint.tensors.items():
        known, words = part_and_split(name), name.split(".")
        if not name.endswith(".weight") or len(tensor.shape) != 2 or known is None or known[0] not in _LINEARS:
            continue
        if "layers" in words and int(words[words.index("layers") + 1]) < layers:
            yield name.removesuffix(".weight")
