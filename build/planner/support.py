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
from ..trtllm.engine_options import engine_option_problems
from ..trtllm.llm_options import llm_problems, llm_warnings
from ..trtllm.options import check_target_options
from .problems import Alternative, Problem, set_to

__all__ = [
    "Traits",
    "allowed_groups",
    "allowed_page_tokens",
    "hardware_problem",
    "is_quantized_here",
    "kernel_of",
    "needed_version",
    "support_warnings",
    "takes_as_is",
    "traits_of",
    "unbuilt_rules",
    "unsupported",
]

_CHECKED_KEYS = ("quantize_scope", "activations", "kv_cache", "kv_layout", "attention_data_parallel", "guard")


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
    shared_unevenly: tuple[str, ...]
    """Parts that go to fewer ranks where they do not divide among all: to as many as divide their whole blocks."""
    whole_attention_data: tuple[str, ...]
    """Parts that every rank holds whole under attention data parallelism, beside attention itself."""
    memory_fraction: float | None = None
    """The memory fraction when a recipe gives no memory key."""


def traits_of(target: str) -> Traits:
    """How a target holds and spreads weights."""
    return Traits.model_validate(_table()[target]["traits"])


def unbuilt_rules(target: str) -> list[dict[str, Any]]:
    """What this version does not build for a target: values of what is not, and the reason. The first that fits counts."""
    rules: list[dict[str, Any]] = _table()[target].get("unbuilt", [])
    return rules


def is_quantized_here(shape: ModelShape) -> bool:
    """Whether this version quantizes and measures models of this kind: those that the torch target runs."""
    torch = _table()["torch"]
    return torch["architectures"].get(shape.architecture) is True and not shape.has_windows


def allowed_groups(recipe: Recipe, shape: ModelShape) -> tuple[int, ...] | None:
    """Group sizes that the target's kernels take, largest first; None when any that divides will do."""
    groups = _table()[recipe.target].get("groups", {}).get(kernel_of(recipe, shape))
    return None if groups is None else tuple(groups)


def kernel_of(recipe: Recipe, shape: ModelShape) -> str | None:
    """The kind of weights that kernels will see: what is built, or what the input is already."""
    if recipe.weights != "as_is":
        return recipe.weights
    return shape.quantization.kernel if shape.quantization else None


def allowed_page_tokens(target: str, shape: ModelShape, hardware: Hardware) -> tuple[tuple[int, ...], str] | None:
    """Page sizes that the target takes for this kind of attention, the usual first, and why; None when any will do."""
    for rule in _table()[target]["page_tokens"]:
        if rule.get("attention", _attention_of(shape)) == _attention_of(shape) and (
            "sm" not in rule or hardware.compute_capability in rule["sm"]
        ):
            return tuple(rule["allowed"]), rule["reason"]
    return None


def unsupported(recipe: Recipe, shape: ModelShape, hardware: Hardware) -> list[Problem]:
    """Everything about a recipe that its target does not run on this hardware."""
    target = _table()[recipe.target]
    problems = [
        hardware_problem(recipe, hardware),
        _architecture(target, recipe.target, shape, hardware),
        _attention(target, shape, hardware),
        _look_up(target["rope"], "rope", shape.rope, hardware, where="config.json"),
        _weights(target, recipe, shape, hardware),
        *(_look_up(target[key], key, _text(getattr(recipe, key)), hardware) for key in _CHECKED_KEYS),
        _page_tokens(recipe, shape, hardware),
    ]
    for key, limit in target.get("limits", {}).items():
        if getattr(recipe, key) > limit:
            message = f"{key} {getattr(recipe, key)}: the {recipe.target} target runs {key} {limit} only"
            problems.append(Problem(code=key, where=key, message=message, alternatives=set_to(key, [limit])))
    if recipe.target_options:
        refused = check_target_options(recipe.target, recipe.target_options)
        problems += refused
        if recipe.target == "tensorrt" and not refused:
            problems += engine_option_problems(recipe)
    if recipe.target == "trtllm-pytorch":
        problems += llm_problems(recipe, shape, since=needed_version(recipe.target, shape.architecture))
    return [problem for problem in problems if problem]


def support_warnings(recipe: Recipe, shape: ModelShape, hardware: Hardware) -> list[str]:
    """What is legal and still worth a word."""
    target = _table()[recipe.target]
    facts = {"weights": kernel_of(recipe, shape), "kv_cache": recipe.kv_cache, "attention": _attention_of(shape)}
    found = [
        rule["text"].format(max_num_tokens=recipe.max_num_tokens)
        for rule in target.get("warnings", [])
        if all(rule[key] == fact for key, fact in facts.items() if key in rule)
        and hardware.compute_capability not in rule.get("not_sm", ())
    ]
    if since := needed_version(recipe.target, shape.architecture):
        found.append(f"{shape.architecture} needs TensorRT-LLM {since} or later")
    if recipe.target == "trtllm-pytorch":
        found += llm_warnings(recipe, shape, hardware)
    return found


def needed_version(target: str, architecture: str) -> str | None:
    """The version of TensorRT-LLM from which on a target has a model, or None where the recorded one has it."""
    verdict = _table()[target]["architectures"].get(architecture)
    since: str | None = verdict.get("since") if isinstance(verdict, dict) else None
    return since


def hardware_problem(recipe: Recipe, hardware: Hardware) -> Problem | None:
    """That a target runs on another kind of hardware, whatever the model; None when it does on this."""
    if hardware.kind in _table()[recipe.target]["needs"]:
        return None
    message = f"the {recipe.target} target needs an NVIDIA GPU, and {hardware.name} is none; name one with --gpu"
    return Problem(code="hardware", where="target", message=message, alternatives=set_to("target", ["torch"]))


def takes_as_is(target: str, shape: ModelShape, hardware: Hardware) -> bool:
    """Whether a target runs the input in the form that it has."""
    return _weights_reason(_table()[target], "as_is", shape, hardware) is None


def _architecture(target: dict[str, Any], asked: str, shape: ModelShape, hardware: Hardware) -> Problem | None:
    known = target["architectures"]
    name = shape.architecture or f"model_type {shape.model_type or 'absent'}"
    reason = _reason(known.get(shape.architecture, "this architecture is not known here"), hardware)
    if reason is None and shape.has_windows and (no := _reason(target["windows"]["any"], hardware)):
        reason = no.format(window=shape.sliding_window)
    if reason is None:
        return None
    others = [other for other in _table() if other != asked]
    message = f"{name}: {reason}"
    if shape.architecture not in known:
        message += f"; known are {', '.join(_legal(known, hardware))}"
    alternatives = set_to("target", others, name_key=True)
    return Problem(code="architecture", where="config.json", message=message, alternatives=alternatives)


def _attention_of(shape: ModelShape) -> str:
    return "sparse" if shape.indexer else "latent" if shape.latent else "plain"


def _attention(target: dict[str, Any], shape: ModelShape, hardware: Hardware) -> Problem | None:
    kind = _attention_of(shape)
    reason = _reason(target.get("attention", {}).get(kind, True), hardware)
    if reason is None:
        return None
    return Problem(code="attention", where="config.json", message=f"{kind} attention: {reason}")


def _weights(target: dict[str, Any], recipe: Recipe, shape: ModelShape, hardware: Hardware) -> Problem | None:
    reason = _weights_reason(target, recipe.weights, shape, hardware)
    if reason is None:
        return None
    others = _nearest(recipe.weights, [name for name in target["weights"] if name != "as_is"], list(target["weights"]))
    if shape.quantization is None:
        alternatives = set_to("weights", others)
    else:  # there is no way back from what it is quantized to
        alternatives = (
            *set_to("weights", ["as_is"]),
            *(Alternative(text=f"{n} from an unquantized copy", changes={"weights": n}, unquantized=True) for n in others),
        )
    return Problem(code="weights", where="weights", message=f"weights {recipe.weights}: {reason}", alternatives=alternatives)


def _weights_reason(target: dict[str, Any], weights: str, shape: ModelShape, hardware: Hardware) -> str | None:
    if reason := _reason(target["weights"][weights], hardware):
        return reason
    tables, value = ("weights", "expert_weights"), weights
    if weights == "as_is":
        if shape.quantization is None:
            return "the input is not quantized; bf16 keeps it as it is"
        if shape.quantization.kernel is None:
            return f"the input is quantized as {shape.quantization.name}, which is not known here"
        tables, value = ("as_is", "as_is_experts"), shape.quantization.kernel
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
    return Problem(code="page_tokens", where="page_tokens", message=message, alternatives=set_to("page_tokens", legal))


def _look_up(known: dict[str, Any], key: str, value: str, hardware: Hardware, where: str | None = None) -> Problem | None:
    reason = _reason(known.get(value, "this one is not known here"), hardware)
    if reason is None:
        return None
    legal = _nearest(value, _legal(known, hardware), list(known)) if where is None else ()
    values = [{"true": True, "false": False}.get(name, name) for name in legal]
    return Problem(code=key, where=where or key, message=f"{key} {value}: {reason}", alternatives=set_to(key, values))


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
