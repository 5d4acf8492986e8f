"""Is the written checkpoint what was asked for? Every tensor is accounted for against the base.

* A tensor that was not to be quantized equals the base's, bit for bit, after the cast to bf16.
* A norm may differ only by an AWQ scale folded into it, and then the linears it feeds must carry the
  inverse: their dequantized weights times that scale must lie within half a quantization step of the base.
* A tensor that was to be quantized is, with the planned kind and group, and is as close to the base
  as its format allows.
* Nothing else is there, and the bytes are the plan's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from roundhouse.errors import ModelError, VerifyError

from .checkpoint import Checkpoint, read_checkpoint
from .events import OnStep
from .kv_scales import KvScaleReport, classify_kv_scales
from .plan import Plan, is_quantized
from .recipe import Recipe
from .sources import Model
from .weights import QuantizedLinear, Tensors, dequantize, quantized_linear

if TYPE_CHECKING:
    import torch

__all__ = ["Verified", "verify_checkpoint"]

_FED_BY = {
    "input_layernorm": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "post_attention_layernorm": ("mlp.gate_proj", "mlp.up_proj"),
}
"""Which linears a norm feeds, in one layer of every supported family."""

_BF16_SLACK = 0.02
"""Relative slack for bf16 roundings of scales, norms and rescaled weights (each 2^-9 to 2^-8)."""


@dataclass(frozen=True)
class Verified:
    """What each module became, and how the KV scales were found."""

    modules: dict[str, str]
    kv_scales: KvScaleReport


def verify_checkpoint(base: Model, folder: Path, recipe: Recipe, plan: Plan, on_step: OnStep) -> Verified:
    """Compare a written checkpoint with its base and its plan; ``on_step`` hears of each quantized tensor.

    Raises:
        VerifyError: naming every tensor that is not as it should be.
    """
    written = read_checkpoint(folder)
    originals, tensors = Tensors(base.folder), Tensors(folder)
    to_quantize = {tensor.name for tensor in base.checkpoint.tensors.values() if is_quantized(tensor, recipe)}
    kept = set(base.checkpoint.tensors) - to_quantize
    if base.shape.tied_embeddings:
        kept.discard("lm_head.weight")
    modules: dict[str, str] = {}
    problems = _unexplained(written, to_quantize | kept)
    folded, fold_problems = _check_kept(originals, tensors, kept, modules)
    problems += fold_problems
    for done, name in enumerate(sorted(to_quantize), start=1):
        on_step(done, len(to_quantize))
        module = name.removesuffix(".weight")
        try:
            linear = quantized_linear(tensors, module)
        except ModelError:
            problems.append(f"{name} was to be quantized to {recipe.weights} and is not")
            continue
        problems += _check_quantized(originals[name], linear, folded.get(module), module, plan)
        modules[module] = _describe(linear, recipe, module in folded)
    if not problems and written.tensor_bytes != plan.checkpoint_bytes:
        problems.append(f"{written.tensor_bytes:,} bytes of tensors were written, the plan expects {plan.checkpoint_bytes:,}")
    if problems:
        shown = problems[:8] + ([f"and {len(problems) - 8} more"] if len(problems) > 8 else [])
        raise VerifyError("the written checkpoint is not what was asked for:\n" + "\n".join(f"  - {line}" for line in shown))
    scales = {
        name: tensors[name].float().flatten().tolist() for name in tensors if "scale" in name and not _is_weight_scale(name)
    }
    return Verified(modules, classify_kv_scales(scales, layers=plan.shape.layers, kv_cache=recipe.kv_cache))


def _is_weight_scale(name: str) -> bool:
    return name.endswith((".weight_scale", ".input_scale", ".pre_quant_scale"))


def _unexplained(written: Checkpoint, expected: set[str]) -> list[str]:
    extra = [name for name in written.tensors if name not in expected and "scale" not in name.rpartition(".")[2]]
    return [f"{name} is not in the base model" for name in sorted(extra)]


def _check_kept(
    originals: Mapping[str, torch.Tensor], tensors: Mapping[str, torch.Tensor], kept: set[str], modules: dict[str, str]
) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Tensors that were not to change; returns the scale folded before each linear, and the problems."""
    import torch

    folded: dict[str, torch.Tensor] = {}
    problems = []
    for name in sorted(kept):
        if name not in tensors:
            problems.append(f"{name} is missing")
            continue
        original, now = originals[name].to(torch.bfloat16), tensors[name]
        module = name.rpartition(".")[0]
        modules.setdefault(module, "bf16")
        if now.dtype == torch.bfloat16 and torch.equal(original, now):
            continue
        layer, _, norm = module.rpartition(".")
        if norm not in _FED_BY or now.shape != original.shape:
            problems.append(f"{name} was not to be quantized and differs from the base")
            continue
        ratio = torch.where(original == 0, 1.0, now.float() / original.float())
        folded.update({f"{layer}.{linear}": ratio for linear in _FED_BY[norm]})
        modules[module] = "bf16, AWQ scale folded in"
    return folded, problems


def _check_quantized(
    original: torch.Tensor, linear: QuantizedLinear, folded: torch.Tensor | None, module: str, plan: Plan
) -> list[str]:
    """One quantized linear against the base's weight, element by element."""
    if linear.shape != tuple(original.shape):
        return [f"{module} has shape {linear.shape}, the base {tuple(original.shape)}"]
    if linear.group_size != plan.group_size:
        return [f"{module} has group size {linear.group_size}, planned {plan.group_size}"]
    weight, base = dequantize(linear), original.float()
    step = _half_step(linear)
    if folded is not None:
        weight, step = weight * folded, step * folded.abs()
    if linear.pre_quant_scale is not None:
        step = step * linear.pre_quant_scale.float().abs()
    excess = (weight - base).abs() - (step + _BF16_SLACK * base.abs())
    if linear.kind == "fp8":
        excess -= base.abs() / 16  # half a step of a 3-bit mantissa
    wrong = int((excess > 0).sum())
    return [f"{module}: {wrong:,} weights are further from the base than the format allows"] if wrong else []


def _half_step(linear: QuantizedLinear) -> torch.Tensor:
    """Half the absolute distance of neighbouring values, [N, K] or a scalar."""
    if linear.kind == "fp8":
        return linear.weight_scale.float() * 2.0**-10  # half the smallest subnormal
    rows, columns = linear.shape
    groups = linear.weight_scale.shape[1]
    return (linear.weight_scale.float() / 2)[:, :, None].expand(rows, groups, columns // groups).reshape(rows, columns)


def _describe(linear: QuantizedLinear, recipe: Recipe, folded: bool) -> str:
    text = f"{recipe.weights} g{linear.group_size}" if linear.group_size else recipe.weights
    if folded:
        text += ", input scale folded into the norm"
    elif linear.pre_quant_scale is not None:
        text += ", input scale kept"
    return text
