"""The support table: which target runs what on which hardware, with the reason for each no (``support.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ..hardware import Hardware
from ..models.shape import ModelShape
from ..recipe import Recipe

__all__ = [
    "Problem",
    "Traits",
    "allowed_groups",
    "allowed_page_tokens",
    "support_warnings",
    "takes_as_is",
    "traits_of",
    "unbuilt_reason",
    "unsupported",
]

_CHECKED_KEYS = ("quantize_scope", "activations", "kv_cache", "kv_layout", "attention_data_parallel", "guard")


class Problem(BaseModel):
    """One reason why a plan is refused, and what would be legal instead, nearest first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    where: str
    message: str
    legal_alternatives: tuple[str, ...] = ()


class Traits(BaseModel):
    """How a target holds and spreads weights."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    page_tokens: int
    held_as_bf16: tuple[str, ...]
    """Weight formats that it turns into BF16 when it loads them."""
    int4_scale_bytes: int
    absorbed: Literal["none", "keys", "both"]
    """Which parts of latent attention's kv_b_proj have a second, 16-bit copy in memory."""
    whole_latent: tuple[str, ...]
    """Parts that every rank of a model with latent attention holds whole."""
    whole_attention_data: tuple[str, ...]
    """Parts that every rank holds whole under attention data parallelism, beside attention itself."""
    memory_fraction: float | None = None
    """The memory fraction when a recipe gives no memory key."""


def traits_of(target: str) -> Traits:
    """How a target holds and spreads weights."""
    return Traits.model_validate(_table()[target]["traits"])


def unbuilt_reason(target: str) -> str | None:
    """Why this version builds nothing for a target, or None when it does."""
    reason: str | None = _table()[target].get("unbuilt")
    return reason


def allowed_groups(recipe: Recipe) -> tuple[int, ...] | None:
    """INT4 group sizes that the target's kernels take, largest first; None when any that divides will do."""
    groups = _table()[recipe.target].get("groups", {}).get(recipe.weights)
    return None if groups is None else tuple(groups)


def allowed_page_tokens(target: str, shape: ModelShape, hardware: Hardware) -> tuple[tuple[int, ...], str] | None:
    """Page sizes that the target takes for this kind of attention, the usual first, and why; None when any will do."""
    kinds = {"sparse": shape.indexer is not None, "latent": shape.latent is not None}
    for rule in _table()[target]["page_tokens"]:
        applies = kinds[rule["attention"]] if "attention" in rule else True
        if applies and ("sm" not in rule or hardware.compute_capability in rule["sm"]):
            return tuple(rule["allowed"]), rule["reason"]
    return None


def unsupported(recipe: Recipe, shape: ModelShape, hardware: Hardware) -> list[Problem]:
    """Everything about a recipe that its target does not run on this hardware."""
    target = _table()[recipe.target]
    problems = [
        _hardware(target, recipe, hardware),
        _architecture(target, recipe.target, shape, hardware),
        _look_up(target["rope"], "rope", shape.rope, hardware, where="config.json"),
        _weights(target, recipe, shape, hardware),
        *(_look_up(target[key], key, _text(getattr(recipe, key)), hardware) for key in _CHECKED_KEYS),
        _page_tokens(recipe, shape, hardware),
    ]
    for key, limit in target.get("limits", {}).items():
        if getattr(recipe, key) > limit:
            message = f"{key} {getattr(recipe, key)}: the {recipe.target} target runs {key} {limit} only"
            problems.append(Problem(code=key, where=key, message=message, legal_alternatives=(str(limit),)))
    if recipe.target_options:
        message = f"the {recipe.target} target has no options ({', '.join(recipe.target_options)})"
        problems.append(Problem(code="target_options", where="target_options", message=message))
    return [problem for problem in problems if problem]


def support_warnings(recipe: Recipe, shape: ModelShape) -> list[str]:
    """What is legal and still worth a word."""
    target = _table()[recipe.target]
    found = [
        rule["text"]
        for rule in target.get("warnings", [])
        if all(getattr(recipe, key) == value for key, value in rule.items() if key != "text")
    ]
    verdict = target["architectures"].get(shape.architecture)
    if isinstance(verdict, dict) and "since" in verdict:
        found.append(f"{shape.architecture} needs TensorRT-LLM {verdict['since']} or later")
    return found


def takes_as_is(target: str, shape: ModelShape, hardware: Hardware) -> bool:
    """Whether a target runs the input in the form that it has."""
    return _weights_reason(_table()[target], "as_is", shape, hardware) is None


def _hardware(target: dict[str, Any], recipe: Recipe, hardware: Hardware) -> Problem | None:
    if hardware.kind in target["needs"]:
        return None
    message = f"the {recipe.target} target needs an NVIDIA GPU, and {hardware.name} is none; name one with --gpu"
    return Problem(code="hardware", where="target", message=message, legal_alternatives=("torch",))


def _architecture(target: dict[str, Any], asked: str, shape: ModelShape, hardware: Hardware) -> Problem | None:
    known = target["architectures"]
    name = shape.architecture or f"model_type {shape.model_type or 'absent'}"
    reason = _reason(known.get(shape.architecture, "this architecture is not known here"), hardware)
    if reason is None and shape.has_windows and (no := _reason(target["windows"]["any"], hardware)):
        reason = no.format(window=shape.sliding_window)
    if reason is None:
        return None
    others = [
        f"target {other}"
        for other, entry in _table().items()
        if other != asked and shape.architecture in _legal(entry["architectures"], hardware)
    ]
    message = f"{name}: {reason}"
    if shape.architecture not in known:
        message += f"; known are {', '.join(_legal(known, hardware))}"
    return Problem(code="architecture", where="config.json", message=message, legal_alternatives=tuple(others))


def _weights(target: dict[str, Any], recipe: Recipe, shape: ModelShape, hardware: Hardware) -> Problem | None:
    legal = tuple(
        name
        for name in target["weights"]
        if (name != "as_is" or shape.quantization is not None) and _weights_reason(target, name, shape, hardware) is None
    )
    reason = _weights_reason(target, recipe.weights, shape, hardware)
    if reason is None:
        return None
    nearest = _nearest(recipe.weights, legal, list(target["weights"]))
    if shape.quantization is not None:  # there is no way back from what it is quantized to
        nearest = tuple(name if name == "as_is" else f"{name} from an unquantized copy" for name in nearest)
    return Problem(code="weights", where="weights", message=f"weights {recipe.weights}: {reason}", legal_alternatives=nearest)


def _weights_reason(target: dict[str, Any], weights: str, shape: ModelShape, hardware: Hardware) -> str | None:
    if reason := _reason(target["weights"][weights], hardware):
        return reason
    tables, value = (("weights", "expert_weights"), weights)
    if weights == "as_is":
        form = shape.quantization.format if shape.quantization else "none"
        if form is None:
            return f"the input is quantized as {shape.quantization.name if shape.quantization else ''}, which is not known here"
        tables, value = ("as_is", "as_is_experts"), form
    for table in tables if shape.moe else tables[:1]:
        if reason := _reason(target.get(table, {}).get(value, True), hardware):
            return reason
    return None


def _page_tokens(recipe: Recipe, shape: ModelShape, hardware: Hardware) -> Problem | None:
    rule = allowed_page_tokens(recipe.target, shape, hardware)
    if rule is None or recipe.page_tokens in rule[0]:
        return None
    legal = sorted(rule[0], key=lambda size: abs(size - recipe.page_tokens))
    message = f"page_tokens {recipe.page_tokens}: {rule[1]}"
    return Problem(code="page_tokens", where="page_tokens", message=message, legal_alternatives=tuple(map(str, legal)))


def _look_up(known: dict[str, Any], key: str, value: str, hardware: Hardware, where: str | None = None) -> Problem | None:
    reason = _reason(known.get(value, "this one is not known here"), hardware)
    if reason is None:
        return None
    legal = _nearest(value, _legal(known, hardware), list(known))
    return Problem(code=key, where=where or key, message=f"{key} {value}: {reason}", legal_alternatives=legal)


def _reason(verdict: Any, hardware: Hardware) -> str | None:
    """Why a verdict is a no on this hardware, or None when it is a yes."""
    if verdict is True:
        return None
    if isinstance(verdict, str):
        return verdict
    if "sm" not in verdict or hardware.compute_capability is None or hardware.compute_capability in verdict["sm"]:
        return None  # without an NVIDIA GPU there is one problem, not one for each kernel
    return f"{verdict['reason']}; {hardware.name} has SM {hardware.compute_capability}"


def _legal(known: dict[str, Any], hardware: Hardware) -> tuple[str, ...]:
    return tuple(name for name, verdict in known.items() if _reason(verdict, hardware) is None)


def _nearest(value: str, legal: Iterable[str], order: list[str]) -> tuple[str, ...]:
    place = order.index(value) if value in order else 0
    return tuple(sorted(legal, key=lambda name: abs(order.index(name) - place)))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads(files(__package__).joinpath("support.toml").read_text())["targets"]
    return table
