"""What of a recipe TensorRT-LLM's PyTorch backend would refuse, get wrong or do otherwise than it seems.

The page check is installed through the KV connector, the one place that every rank imports code from (docs/tensorrt-llm.md):
what the connector refuses, a recipe with ``guard: tags`` cannot have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..hardware import Hardware
from ..models.exclusions import exclusion
from ..models.shape import ModelShape
from ..planner.problems import Alternative, Problem, set_to
from ..recipe import Recipe
from .llm_graphs import GRAPH_SIZES, GRAPH_SIZES_END, rows_of_a_rank, sizes_beyond
from .options import nested_options
from .upstream import upstream

__all__ = ["llm_problems", "llm_warnings"]

_INT4 = ("int4_awq", "w4a8_awq")

_A_KEY_PROJECTION = "model.layers.0.self_attn.k_proj.weight"

_OURS = "env_overrides.ROUNDHOUSE_"
"""How the environment begins that the page check is told through."""

_TRANSCEIVER = "cache_transceiver_config"
"""How pages travel from servers of prefill to those of decode."""

_REFUSED_WITH_GUARD = {
    "kv_connector_config": "there is one KV connector, and the page check is it",
    "disable_overlap_scheduler": "the page check runs between whole steps, so the overlap scheduler is off",
    "speculative_config": "the KV connector refuses speculative decoding",
    _TRANSCEIVER: "the KV connector refuses a cache transceiver",
    "context_parallel_size": "the KV connector's pages are those of one rank",
    "max_beam_width": "beams share pages in ways that the page check does not follow",
    "kv_cache_config.host_cache_size": "pages that move to the host and back are not where their number says",
    "kv_cache_config.enable_partial_reuse": "part of a page would be copied from one that nobody names",
    "kv_cache_config.max_attention_window": "pages outside of a window are freed under their request",
    "scheduler_config.capacity_scheduler_policy": "the KV connector needs GUARANTEED_NO_EVICT",
    "orchestrator_type": "the ranks agree over MPI on what was found",
    "env_overrides.TLLM_DISABLE_MPI": "the ranks agree over MPI on what was found",
}
"""Options that cannot be had beside the page check, and why."""

_HARMLESS: dict[str, tuple[Any, ...]] = {
    "disable_overlap_scheduler": (True,),
    "context_parallel_size": (1,),
    "max_beam_width": (1,),
    "kv_cache_config.host_cache_size": (0,),
    "kv_cache_config.enable_partial_reuse": (False,),
    "scheduler_config.capacity_scheduler_policy": ("GUARANTEED_NO_EVICT",),
    "orchestrator_type": ("rpc",),
    "env_overrides.TLLM_DISABLE_MPI": ("0",),
}
"""Values of these that change nothing."""


def llm_problems(recipe: Recipe, shape: ModelShape, *, since: str | None = None) -> list[Problem]:
    """Everything about a recipe for ``trtllm-pytorch`` that upstream, or the page check in it, refuses.

    Args:
        recipe: what is wanted.
        shape: the model's.
        since: the version of TensorRT-LLM from which on it has the model, where that is later than the recorded one.
    """
    problems = [*_guard_problems(recipe, shape, since)] if recipe.guard != "off" else []
    given = dict(_given(recipe.target_options))
    if given.get(GRAPH_SIZES) and given.get(GRAPH_SIZES_END):
        where = f"target_options.{GRAPH_SIZES}"
        message = f"{where} and {GRAPH_SIZES_END} exclude each other upstream; keep one"
        problems.append(Problem(code="target_options", where=where, message=message))
    if recipe.max_num_tokens < recipe.page_tokens:
        message = (
            f"max_num_tokens {recipe.max_num_tokens} is less than page_tokens {recipe.page_tokens}: TensorRT-LLM cuts prompts "
            "into whole pages, and no step would ever take one"
        )
        smaller = set_to("page_tokens", [1 << (recipe.max_num_tokens.bit_length() - 1)], name_key=True)
        choices = (*set_to("max_num_tokens", [recipe.page_tokens], name_key=True), *smaller)
        problems.append(Problem(code="max_num_tokens", where="max_num_tokens", message=message, alternatives=choices))
    if recipe.memory_fraction == 1:
        message = "memory_fraction 1: TensorRT-LLM's cache manager asserts that it is given less than all of the memory"
        less = set_to("memory_fraction", [0.95])
        problems.append(Problem(code="memory_fraction", where="memory_fraction", message=message, alternatives=less))
    if _repeats_int4_heads(recipe, shape):
        message = (
            f"tensor_parallel {recipe.tensor_parallel}: INT4 key and value projections of {shape.kv_heads} heads are not "
            "repeated on more ranks than that by TensorRT-LLM, and do not load"
        )
        ranks = (*set_to("tensor_parallel", [shape.kv_heads]), *set_to("weights", ["fp8"], name_key=True))
        problems.append(Problem(code="tensor_parallel", where="tensor_parallel", message=message, alternatives=ranks))
    return problems


def llm_warnings(recipe: Recipe, shape: ModelShape, hardware: Hardware) -> list[str]:
    """What is legal for ``trtllm-pytorch`` and still worth a word."""
    found = []
    if recipe.guard != "off" and recipe.role != "prefill":  # where it is off anyway
        found.append(
            f"guard {recipe.guard} turns the overlap scheduler off on trtllm-pytorch: the host's work of each step no longer "
            "hides behind the GPU's; guard: off keeps it"
        )
    if recipe.role != "aggregated" and not any(_lies_in(path, _TRANSCEIVER) for path, _ in _given(recipe.target_options)):
        found.append(
            f"role {recipe.role} without target_options.{_TRANSCEIVER}: the server sends pages to nobody and gets none, and "
            "answers whole requests; with it, guard: off is needed"
        )
    if recipe.kv_cache == "fp8":
        found.append(
            "FP8 KV on trtllm-pytorch is stored with scale 1, whatever scales the checkpoint has: keys and values beyond ±448 "
            "are cut off"
        )
    rows = rows_of_a_rank(recipe)
    if beyond := sizes_beyond(dict(_given(recipe.target_options)).get(GRAPH_SIZES), rows):
        sizes = ", ".join(map(str, beyond))
        found.append(f"target_options.{GRAPH_SIZES}: {sizes} left out, for a step of a rank has 1 to {rows} requests")
    found += _about_experts(recipe, shape, hardware)
    return found


def _guard_problems(recipe: Recipe, shape: ModelShape, since: str | None) -> Iterator[Problem]:
    off = set_to("guard", ["off"], name_key=True)
    if since is not None:
        message = (
            f"{shape.architecture} needs TensorRT-LLM {since}, and the page check knows {upstream().version} alone: on another "
            "version it does not load"
        )
        yield _guard(message, off)
    if recipe.attention_data_parallel:
        message = (
            "with attention data parallelism each rank runs requests of its own; pages cannot be checked: "
            "set guard: off or attention_data_parallel: false"
        )
        yield _guard(message, (*off, *set_to("attention_data_parallel", [False], name_key=True)))
    if recipe.pipeline_parallel > 1:
        message = "the KV connector that installs the page check refuses pipeline parallelism"
        yield _guard(message, (*off, *set_to("pipeline_parallel", [1], name_key=True)))
    if reason := _window_reason(recipe, shape):
        yield _guard(f"{reason} set guard: off", off)
    for path, value in _given(recipe.target_options):
        reason = next((why for key, why in _REFUSED_WITH_GUARD.items() if _lies_in(path, key)), None)
        if path.startswith(_OURS):
            reason = "it belongs to the page check"
        if reason and value is not None and value not in _HARMLESS.get(path, ()):
            yield _guard(f"target_options.{path}: {reason}; with guard: off it is free", off, where=f"target_options.{path}")


def _window_reason(recipe: Recipe, shape: ModelShape) -> str | None:
    """Why layers that forget cannot be checked, or None where no layer forgets."""
    if shape.has_windows and len(shape.sliding_layers) < shape.layers:
        return (
            f"some layers look back on {shape.sliding_window:,} tokens and others on all, and the KV connector that installs "
            "the page check refuses several window sizes:"
        )
    if shape.has_windows and (recipe.max_seq_len or shape.max_positions) > (shape.sliding_window or 0):
        return f"pages outside of the window of {shape.sliding_window:,} tokens are freed under their request, unchecked:"
    return None


def _guard(message: str, alternatives: tuple[Alternative, ...], where: str = "guard") -> Problem:
    return Problem(code="guard", where=where, message=message, alternatives=alternatives)


def _lies_in(path: str, key: str) -> bool:
    return path == key or path.startswith(f"{key}.")


def _given(options: Mapping[str, Any], inside: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of ``target_options`` with its dotted path; none where they cannot be read, which is told elsewhere."""
    try:
        nested = nested_options(options)
    except ValueError:
        return
    for key, value in nested.items():
        path = f"{inside}{key}"
        if isinstance(value, dict) and value:
            yield from _given(value, f"{path}.")
        else:
            yield path, value


def _repeats_int4_heads(recipe: Recipe, shape: ModelShape) -> bool:
    """Whether INT4 keys' and values' heads would have to be repeated: upstream does so with NVFP4's scales only."""
    cut = 1 if recipe.attention_data_parallel else recipe.tensor_parallel
    if recipe.weights == "as_is":
        given = shape.quantization
        is_int4 = given is not None and given.kernel in _INT4 and not exclusion(given)(_A_KEY_PROJECTION)
    else:
        is_int4 = recipe.weights in _INT4 and recipe.quantize_scope == "all_linear"
    return is_int4 and shape.latent is None and cut > shape.kv_heads


def _about_experts(recipe: Recipe, shape: ModelShape, hardware: Hardware) -> Iterator[str]:
    form = upstream().hf_checkpoint.w4a8_mode_of.get(shape.architecture)
    kernel: str = recipe.weights
    if kernel == "as_is" and shape.quantization is not None:
        kernel = shape.quantization.kernel or kernel
    if shape.moe is None or kernel != "w4a8_awq" or form is None:
        return
    if form == "w4a8_custom":
        yield (
            f"{shape.architecture} reads routed experts as INT4 without AWQ's scales, packed along their inputs: what "
            "TensorRT-LLM's own examples/quantization/quantize_mixed_precision_moe.py writes, and ModelOpt does not. Only a "
            "checkpoint in that form, given with weights as_is, passes the check of a build"
        )
    elif hardware.compute_capability == "8.9":
        yield "W4A8 experts on SM 8.9: TensorRT-LLM's loader reads them as packed otherwise than ModelOpt packs them"
