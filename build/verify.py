"""Is the written checkpoint what was asked for? Every tensor is accounted for against the base.

* A tensor that was not to be quantized equals the base's, bit for bit, after the cast to bf16.
* A norm may differ only by an AWQ scale folded into it, and then the linears it feeds must carry the
  inverse: their dequantized weights times that scale must lie within half a quantization step of the base.
* A tensor that was to be quantized is, with the planned kind and group; its scales are no larger than
  the base's weights call for, and each weight is as close to the base as its format allows.
* KV scales are classified; a tensor with "scale" in its name that nobody knows is named.
* Nothing else is there, and the bytes are the plan's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from roundhouse.errors import ModelError, VerifyError

from .events import OnStep
from .kv_scales import KvScaleReport, classify_kv_scales, is_kv_scale_candidate, is_scale
from .models.checkpoint import Checkpoint, read_checkpoint
from .models.sources import Model
from .planner.plan import Plan
from .planner.scheme import is_quantized_name
from .recipe import Recipe
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
_SCALE_SLACK = 0.03
"""Relative slack of a scale over the one its weights call for: the same roundings, of weights and input scales."""
_INT4_LARGEST, _FP8_LARGEST = 7, 448
"""The largest value of each format: a scale is the largest weight divided by it."""


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
    to_quantize = {name for name, t in base.checkpoint.tensors.items() if is_quantized_name(name, t.shape, recipe)}
    kept = set(base.checkpoint.tensors) - to_quantize
    if base.shape.tied_embeddings:
        kept.discard("lm_head.weight")
    modules: dict[str, str] = {}
    problems = _unexplained(written, to_quantize | kept)
    folded, fold_problems = _check_kept(originals, tensors, kept, to_quantize, recipe, modules)
    problems += fold_problems
    for done, name in enumerate(sorted(to_quantize), start=1):
        on_step(done, len(to_quantize))
        module = name.removesuffix(".weight")
        try:
            linear = quantized_linear(tensors, module)
        except ModelError:
            problems.append(f"{name} was to be quantized to {recipe.weights} and is not")
            continue
        problems += _check_quantized(originals, linear, folded.get(module), module, plan)
        modules[module] = _describe(linear, recipe, module in folded)
    if problems:
        raise _refuse(problems)
    scales = {name: tensors[name].float().flatten().tolist() for name in tensors if is_kv_scale_candidate(name)}
    kv_scales = classify_kv_scales(scales, layers=plan.shape.layers, kv_cache=recipe.kv_cache)
    if recipe.kv_cache == "fp8" and kv_scales.state == "absent":
        problems.append("KV scales are absent although the recipe asks for FP8 KV")
    problems += [f"{name} is a scale that nothing here knows" for name in kv_scales.unknown]
    if not problems and written.tensor_bytes != plan.checkpoint_bytes:
        problems.append(f"{written.tensor_bytes:,} bytes of tensors were written, the plan expects {plan.checkpoint_bytes:,}")
    if problems:
        raise _refuse(problems)
    return Verified(modules, kv_scales)


def _refuse(problems: list[str]) -> VerifyError:
    shown = problems[:8] + ([f"and {len(problems) - 8} more"] if len(problems) > 8 else [])
    return VerifyError("the written checkpoint is not what was asked for:\n" + "\n".join(f"  - {line}" for line in shown))


def _unexplained(written: Checkpoint, expected: set[str]) -> list[str]:
    extra = [name for name in written.tensors if name not in expected and not is_scale(name)]
    return [f"{name} is not in the base model" for name in sorted(extra)]


def _check_kept(
    originals: Mapping[str, torch.Tensor],
    tensors: Mapping[str, torch.Tensor],
    kept: set[str],
    to_quantize: set[str],
    recipe: Recipe,
    modules: dict[str, str],
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
        fed = _fed_by(module)
        compensated = recipe.weights == "int4_awq" and fed and all(f"{linear}.weight" in to_quantize for linear in fed)
        ratio = _folded_scale(original, now) if compensated else None
        if ratio is None:
            problems.append(f"{name} was not to be quantized and differs from the base")
            continue
        folded.update(dict.fromkeys(fed, ratio))
        modules[module] = "bf16, AWQ scale folded in"
    return folded, problems


def _fed_by(norm: str) -> tuple[str, ...]:
    """The linears that a norm feeds, by full name; none when it is not a norm whose scale can be folded."""
    layer, _, name = norm.rpartition(".")
    return tuple(f"{layer}.{linear}" for linear in _FED_BY.get(name, ()))


def _folded_scale(original: torch.Tensor, now: torch.Tensor) -> torch.Tensor | None:
    """What a norm was multiplied by, per channel; None when that is no positive number everywhere."""
    import torch

    if now.shape != original.shape or now.dtype != torch.bfloat16 or bool(((original == 0) & (now != 0)).any()):
        return None
    ratio = torch.where(original == 0, 1.0, now.float() / original.float())
    return ratio if bool((torch.isfinite(ratio) & (ratio > 0)).all()) else None


def _check_quantized(
    originals: Mapping[str, torch.Tensor], linear: QuantizedLinear, folded: torch.Tensor | None, module: str, plan: Plan
) -> list[str]:
    """One quantized linear against the base's weight, element by element."""
    import torch

    base = originals[f"{module}.weight"].float()
    if linear.shape != tuple(base.shape):
        return [f"{module} has shape {linear.shape}, the base {tuple(base.shape)}"]
    if linear.group_size != plan.group_size:
        return [f"{module} has group size {linear.group_size}, planned {plan.group_size}"]
    input_scale = torch.ones(base.shape[1])
    for scale in (folded, linear.pre_quant_scale):
        if scale is not None:
            input_scale = input_scale * scale.float()
    largest = _largest(originals, base, input_scale, linear, module)
    if not bool((linear.weight_scale <= largest * (1 + _SCALE_SLACK)).all()):
        return [f"{module}: scales are larger than the base's weights call for, or not finite"]
    difference = (dequantize(linear, fold_input_scale=False) * input_scale - base).abs()
    allowed = _half_step(linear) * input_scale.abs() + _BF16_SLACK * base.abs()
    if linear.kind == "fp8":
        allowed = allowed + base.abs() / 16  # half a step of a 3-bit mantissa
    wrong = int((~(difference <= allowed)).sum())  # so that what is not a number counts as wrong
    return [f"{module}: {wrong:,} weights are further from the base than the format allows"] if wrong else []


def _largest(
    originals: Mapping[str, torch.Tensor], base: torch.Tensor, input_scale: torch.Tensor, linear: QuantizedLinear, module: str
) -> torch.Tensor:
    """The largest scale that the base's weights call for: float32 [N, K/g], or a scalar for FP8.

    A larger one would make the tolerance on the weights as large as one likes. FP8 linears that are
    fed by one norm share the largest scale among them.
    """
    import torch

    if linear.kind == "fp8":
        layer = module.rsplit(".", 2)[0]
        fused = next((linears for linears in _FED_BY.values() if module.removeprefix(f"{layer}.") in linears), None)
        shared = [f"{layer}.{name}" for name in fused] if fused else [module]
        return torch.stack([originals[f"{name}.weight"].float().abs().amax() for name in shared]).amax() / _FP8_LARGEST
    rows, columns = base.shape
    groups = linear.weight_scale.shape[1]
    grouped = (base / input_scale).abs().view(rows, groups, columns // groups).amax(-1)
    # A group of zeros may have any scale: with a value other than zero it fails on the weights.
    return torch.where(grouped == 0, linear.weight_scale.float(), grouped / _INT4_LARGEST)


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
