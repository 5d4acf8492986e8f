"""A plan for programs: documented, versioned JSON (``docs/plan-schema.json``). People's view is drawn from the same report.

Bytes are whole numbers of bytes. Where a plan has several pipeline stages, what is said of one GPU is said of a GPU of the
stage that has room for the fewest tokens, except for the fullest GPU's weights. Keys may be added under the same version;
a key that goes, or means something else, makes a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, TypeAdapter

from ..recipe import Recipe
from .buildable import unbuilt_reason
from .plan import Plan
from .report_parts import (
    DecodeReport,
    HardwareReport,
    KvGroupReport,
    ProblemReport,
    QuantizationReport,
    Report,
    StageReport,
)

__all__ = ["PlanReport", "PlanReports", "json_of", "json_schema", "report_of"]


class PlanReport(Report):
    """What one recipe takes on one kind of hardware, what fits, whether it is legal, and how fast it decodes."""

    schema_: Literal["roundhouse.plan/1"] = Field(default="roundhouse.plan/1", alias="schema")
    """Name and version of this form."""
    model: str
    """As the recipe names it: a folder, a hub id, `shape:` and a shipped shape."""
    architecture: str
    """As `config.json` names it."""
    layers: int
    """Layers of the model, those for multi-token prediction left out."""
    parameters: int
    """Parameters of the model, those for multi-token prediction left out."""
    input_quantization: QuantizationReport | None
    """What the input is quantized to already; null when it is not."""
    base_bytes: int
    """Bytes of the input's tensors as stored; as 16-bit numbers when no files were read."""
    target: str
    """`torch`, `tensorrt` or `trtllm-pytorch`, also when the recipe left it open."""
    gpu: str
    """The kind of device; a CPU's name when it is planned for a CPU."""
    gpus: int
    """Devices of one deployment: tensor ranks times pipeline stages."""
    hardware: HardwareReport
    """One of these devices."""
    recipe: Recipe
    """Every key of the recipe, with everything decided that was left open."""
    group_size: int | None
    """Input channels that share an INT4 scale in what is built; null when it is not INT4."""
    quantized_modules: int
    """Linear layers that a build would quantize."""
    checkpoint_bytes: int
    """Bytes of the tensors that a build would write, or of the input when it is kept as it is."""
    weight_bytes_per_gpu: int
    """Bytes of weights on the fullest GPU, with the copies that the runtime makes."""
    kv_layout: tuple[KvGroupReport, ...]
    """What a token leaves in the cache, by how long it is kept."""
    kv_bytes_per_token: int
    """Bytes that a token takes on one GPU while every group keeps it."""
    kv_bytes: int
    """Bytes of the KV pool on one GPU."""
    page_tokens: int
    """Tokens of a page."""
    pages: int
    """Pages of the KV pool on one GPU, of all groups together."""
    kv_tokens: int
    """Tokens that the pools of the whole deployment hold."""
    kv_tokens_context: int | None
    """Tokens of each request that `kv_tokens` is for, where windows make it depend on that; else null."""
    kv_tokens_bf16: int
    """Tokens that pools of the same bytes would hold with a BF16 cache."""
    binding_limit: str
    """Which knob or limit decided how large the pool is."""
    request_tokens: int
    """Tokens of each request that `requests_that_fit` is for."""
    requests_that_fit: int
    """Requests of `request_tokens` tokens that the whole deployment holds at once."""
    max_seq_len: int
    """Tokens of the longest request, prompt and answer."""
    worst_case_bytes: int
    """Bytes of KV pages on one GPU when `max_batch_size` requests reach `max_seq_len` tokens each."""
    worst_case_fits: bool
    """Whether the pool holds this worst case."""
    stages: tuple[StageReport, ...]
    """Memory of each pipeline stage, first layers first."""
    decode: tuple[DecodeReport, ...]
    """Decode speed at concurrencies that find room; empty when none does or the memory's speed is not known."""
    decode_context: int
    """Tokens of each request that `decode` is for."""
    legal: bool
    """Whether the target runs this recipe on this hardware and it fits: true when there are no problems."""
    problems: tuple[ProblemReport, ...]
    """Every reason why it is refused."""
    unbuilt: str | None = None
    """Why this version plans a legal recipe and does not build it; null where it does, and where the recipe is refused."""
    warnings: tuple[str, ...]
    """What is legal and still worth a word."""
    assumptions: tuple[str, ...]
    """What was decided for the recipe or taken for granted."""


class PlanReports(Report):
    """Several plans that were made at once."""

    schema_: Literal["roundhouse.plans/1"] = Field(default="roundhouse.plans/1", alias="schema")
    """Name and version of this form."""
    plans: tuple[PlanReport, ...]
    """In the order in which they were asked for."""


def report_of(plan: Plan) -> PlanReport:
    """What a plan says, for programs."""
    shape, hardware = plan.shape, plan.hardware
    return PlanReport(
        model=plan.recipe.model,
        architecture=shape.architecture,
        layers=shape.layers,
        parameters=plan.parameters,
        input_quantization=None if shape.quantization is None else QuantizationReport.of(shape.quantization),
        base_bytes=plan.base_bytes,
        target=plan.recipe.target,
        gpu=hardware.name,
        gpus=plan.gpus,
        hardware=HardwareReport.of(hardware),
        recipe=plan.recipe,
        group_size=plan.group_size,
        quantized_modules=plan.quantized_modules,
        checkpoint_bytes=plan.checkpoint_bytes,
        weight_bytes_per_gpu=plan.weight_bytes_per_gpu,
        kv_layout=tuple(KvGroupReport.of(group) for group in plan.kv_layout.groups),
        kv_bytes_per_token=plan.kv_bytes_per_token,
        kv_bytes=plan.kv_bytes,
        page_tokens=plan.page_tokens,
        pages=plan.pages,
        kv_tokens=plan.kv_tokens,
        kv_tokens_context=plan.kv_tokens_context,
        kv_tokens_bf16=plan.kv_tokens_bf16,
        binding_limit=plan.binding_limit,
        request_tokens=plan.request_tokens,
        requests_that_fit=plan.requests_that_fit,
        max_seq_len=plan.max_seq_len,
        worst_case_bytes=plan.worst_case_bytes,
        worst_case_fits=plan.worst_case_fits,
        stages=tuple(StageReport.of(stage, hardware) for stage in plan.stages),
        decode=tuple(DecodeReport(**row.model_dump()) for row in plan.decode),
        decode_context=plan.decode_context,
        legal=plan.legal,
        problems=tuple(ProblemReport.of(problem) for problem in plan.problems),
        unbuilt=unbuilt_reason(plan.recipe, plan.shape) if plan.legal else None,
        warnings=plan.warnings,
        assumptions=plan.assumptions,
    )


def json_of(plans: Sequence[Plan | PlanReport]) -> dict[str, Any]:
    """One plan as ``roundhouse.plan/1``, several as ``roundhouse.plans/1``, in JSON's own types."""
    reports = tuple(plan if isinstance(plan, PlanReport) else report_of(plan) for plan in plans)
    return (reports[0] if len(reports) == 1 else PlanReports(plans=reports)).model_dump(mode="json")


def json_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of what :func:`json_of` returns."""
    either: TypeAdapter[PlanReport | PlanReports] = TypeAdapter(PlanReport | PlanReports)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "roundhouse plan --json",
        **either.json_schema(mode="serialization"),
    }
