"""What a plan says, as lines of text with a label, and the words that a comparison shares with them."""

from __future__ import annotations

from ..recipe import Recipe
from ..terminal import byte_text
from .report import PlanReport
from .report_parts import DecodeReport, KvGroupReport

__all__ = [
    "binding_limit_text",
    "devices_text",
    "facts_of",
    "parallelism_text",
    "parameters_text",
    "price_text",
    "speed_text",
    "verdict_text",
    "weights_text",
]


def facts_of(report: PlanReport) -> dict[str, str]:
    """Label → text, in the order in which they are read."""
    staged = len(report.stages) > 1
    where = "" if report.gpus == 1 else " on each GPU of the stage with the least room" if staged else " on each GPU"
    fullest = " on the fullest GPU" if staged else where
    pool = f"{_exact(report.kv_bytes)}{where}: {report.pages:,} pages of {report.page_tokens} tokens"
    worst = f"{report.recipe.max_batch_size:,} × {report.max_seq_len:,} tokens take {_exact(report.worst_case_bytes)}{where}"
    return {
        "model": f"{report.architecture}, {report.layers} layers, {parameters_text(report)} parameters",
        "target": f"{report.target}, role {report.recipe.role}",
        "hardware": _hardware(report),
        "parallelism": parallelism_text(report),
        "weights": weights_text(report),
        "checkpoint": _checkpoint(report),
        "weights in memory": _exact(report.weight_bytes_per_gpu) + fullest,
        "KV cache": f"{_kv_form(report)}, {report.kv_bytes_per_token:,} B a token{where}",
        "KV rows": "; ".join(_rows(group) for group in report.kv_layout),
        "KV pool": pool,
        "KV tokens": _tokens(report),
        "set by": binding_limit_text(report),
        "requests that fit": _requests(report),
        "worst case": f"{worst}: {'fits the pool' if report.worst_case_fits else 'more than the pool'}",
    }


def devices_text(report: PlanReport) -> str:
    """How many of which device: ``8 × H200-SXM``."""
    return report.gpu if report.gpus == 1 else f"{report.gpus} × {report.gpu}"


def verdict_text(report: PlanReport) -> str:
    """Whether it is legal and whether it can be built, and if it is not legal, how many problems there are."""
    if report.legal:
        none = f", but not one request of {report.request_tokens:,} tokens fits"
        return "legal" + (", not built by this version" if report.unbuilt else "") + ("" if report.requests_that_fit else none)
    count = len(report.problems)
    return f"refused, {count} problem{'s' if count > 1 else ''}"


def speed_text(row: DecodeReport) -> str:
    """Tokens a second, as many digits as such a number deserves; derived ones are an upper bound."""
    at_most = "≤ " if row.basis == "derived" else ""
    return at_most + (f"{row.tokens_per_s:,.0f}" if row.tokens_per_s >= 100 else f"{row.tokens_per_s:,.1f}")


def price_text(row: DecodeReport) -> str:
    """The price of a million tokens, or a dash without one."""
    price = row.price_per_million_tokens
    if price is None:
        return "–"
    at_least = "≥ " if row.basis == "derived" else ""
    return at_least + (f"{price:,.3f}" if price >= 0.1 else f"{price:.3g}")


def parameters_text(report: PlanReport) -> str:
    """Parameters in millions or billions."""
    count = report.parameters
    return f"{count / 1e9:,.3f} billion" if count >= 1e9 else f"{count / 1e6:,.1f} million"


def parallelism_text(report: PlanReport) -> str:
    """Every way in which the model is spread over more than one GPU."""
    recipe = report.recipe
    ways = {"tensor": recipe.tensor_parallel, "pipeline": recipe.pipeline_parallel, "expert": recipe.expert_parallel}
    said = [f"{way} {count}" for way, count in ways.items() if count > 1]
    return ", ".join([*said, *(["attention data parallel"] if recipe.attention_data_parallel else [])]) or "none"


def weights_text(report: PlanReport) -> str:
    """The format of the weights: as built, or as the input has them."""
    recipe, before = report.recipe, report.input_quantization
    if recipe.weights == "as_is":
        if before is None:
            return "as_is"
        known = before.format is not None and before.format not in before.name.lower()
        form = [str(before.format)] if known and before.format != "fp8_block" else []
        unit = "blocks of" if before.format == "fp8_block" else "group"
        group = [f"{unit} {before.group_size}"] if before.group_size else []
        return f"as_is: {', '.join([before.name, *form, *group])}"
    if recipe.weights == "bf16":
        return "bf16"
    group = [f"group {report.group_size}"] if report.group_size else []
    return ", ".join([recipe.weights, *group, f"{report.quantized_modules:,} linears ({recipe.quantize_scope})"])


def binding_limit_text(report: PlanReport) -> str:
    """What decided how large the pool is, with its value where the recipe gives one."""
    limit = report.binding_limit
    value = getattr(report.recipe, limit) if limit in Recipe.model_fields else None
    if value is not None:
        return f"{limit} {value:,}"
    return f"{limit}, the target's default" if limit == "memory_fraction" else limit


def _hardware(report: PlanReport) -> str:
    device = report.hardware
    name = devices_text(report) + (f" (SM {device.compute_capability})" if device.compute_capability else "")
    each = " on each" if report.gpus > 1 else ""
    return f"{name}, {byte_text(device.free_bytes)} of {byte_text(device.total_bytes)} free{each}"


def _checkpoint(report: PlanReport) -> str:
    count = report.checkpoint_bytes
    decimal = f"{count / 1e9:,.1f} GB, " if count >= 1e9 else ""  # as model hubs tell it
    size = f"{byte_text(count)} ({decimal}{count:,} B)"
    return size if report.recipe.weights == "as_is" else f"{size}, from {byte_text(report.base_bytes)}"


def _requests(report: PlanReport) -> str:
    batch = report.recipe.max_batch_size
    fewer = f"; max_batch_size {batch:,} lets fewer run at once" if report.requests_that_fit > batch else ""
    return f"{report.requests_that_fit:,} of {report.request_tokens:,} tokens at once{fewer}"


def _kv_form(report: PlanReport) -> str:
    layout = report.recipe.kv_layout
    return report.recipe.kv_cache + ("" if layout == "auto" else f" ({layout})")


def _rows(group: KvGroupReport) -> str:
    fields = ", ".join(f"{field.name} {field.row_bytes:,} B × {field.layers} layers" for field in group.fields)
    return f"last {group.window:,} tokens: {fields}" if group.window else fields


def _tokens(report: PlanReport) -> str:
    where = " in the whole deployment" if report.gpus > 1 else ""
    halved = report.kv_tokens and report.recipe.kv_cache != "bf16"
    bf16 = f" (as bf16 {report.kv_tokens_bf16:,})" if halved else ""
    at = f", in requests of {report.kv_tokens_context:,} tokens" if report.kv_tokens_context else ""
    return f"{report.kv_tokens:,}{where}{bf16}{at}"


def _exact(count: int) -> str:
    return f"{byte_text(count)} ({count:,} B)" if count >= 1024 else byte_text(count)
