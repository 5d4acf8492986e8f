"""The parts of a plan's JSON: device, stages, cache, speed, problems. Attribute docstrings are the schema's descriptions."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict

from ..hardware import Hardware
from ..models.shape import InputQuantization
from .decode import Basis
from .fit import StageMemory
from .kv_layout import KvDtype, KvField, KvGroup
from .problems import Problem

__all__ = [
    "DecodeReport",
    "HardwareReport",
    "KvFieldReport",
    "KvGroupReport",
    "ProblemReport",
    "QuantizationReport",
    "Report",
    "StageReport",
]


class Report(BaseModel):
    """What all parts have in common."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        serialize_by_alias=True,
        json_schema_serialization_defaults_required=True,
    )


class QuantizationReport(Report):
    """What the input's weights are quantized to already, as its configs say."""

    name: str
    """As the config calls it, such as `compressed-tensors`."""
    format: str | None
    """As the planner knows it: `fp8`, `fp8_block`, `int4`, `nvfp4` or `mxfp4`; null when it does not."""
    group_size: int | None
    """Input channels that share a scale; null where there are no such groups or the config does not say."""

    @classmethod
    def of(cls, input_: InputQuantization) -> Self:
        """What a model's shape says."""
        return cls(name=input_.name, format=input_.format, group_size=input_.group_size)


class HardwareReport(Report):
    """One device of the deployment."""

    name: str
    """As in the table of GPUs, or as the machine calls it."""
    kind: str
    """`cuda` or `cpu`."""
    compute_capability: str | None
    """Of an NVIDIA GPU, such as `9.0`; null for a CPU."""
    total_bytes: int
    """Bytes of its memory."""
    free_bytes: int
    """Bytes of it that are free before anything is loaded."""
    bandwidth_bytes_per_s: float | None
    """Bytes a second between memory and cores, as data sheets give it; null when it is not known."""
    unverified: tuple[str, ...]
    """Which numbers of this device are from memory and not from a data sheet."""

    @classmethod
    def of(cls, hardware: Hardware) -> Self:
        """What a plan's hardware says."""
        return cls(
            name=hardware.name,
            kind=hardware.kind,
            compute_capability=hardware.compute_capability,
            total_bytes=hardware.total_memory,
            free_bytes=hardware.free_memory,
            bandwidth_bytes_per_s=hardware.bandwidth,
            unverified=hardware.unverified,
        )


class StageReport(Report):
    """The memory of each GPU of one pipeline stage: the four byte counts add up to the total memory of the device."""

    gpus: int
    """GPUs of the stage, all alike."""
    first_layer: int
    """Number of its first layer, from 0."""
    last_layer: int
    """Number of its last layer."""
    weight_bytes: int
    """Bytes of weights on each GPU."""
    kv_bytes: int
    """Bytes of the KV pool on each GPU."""
    left_over_bytes: int
    """Bytes that neither takes, for activations and the runtime; below zero by what is missing when they do not fit."""
    taken_bytes: int
    """Bytes taken before anything is loaded: by driver and context, or on a CPU by everything else that runs."""

    @classmethod
    def of(cls, stage: StageMemory, hardware: Hardware) -> Self:
        """What a plan's stage says, on its hardware."""
        return cls(
            gpus=stage.gpus,
            first_layer=stage.first_layer,
            last_layer=stage.last_layer,
            weight_bytes=stage.weight_bytes,
            kv_bytes=stage.kv_bytes,
            left_over_bytes=stage.free_memory - stage.weight_bytes - stage.kv_bytes,
            taken_bytes=hardware.total_memory - stage.free_memory,
        )


class KvFieldReport(Report):
    """One tensor that a token leaves in the cache."""

    name: str
    """`k`, `v`, `latent` or `index_key`."""
    layers: int
    """Layers that keep it on one GPU."""
    row_bytes: int
    """Bytes of one token in one layer on one GPU."""
    dtype: KvDtype
    """How its elements are stored."""

    @classmethod
    def of(cls, field: KvField) -> Self:
        """What a layout's field says."""
        return cls(name=field.name, layers=len(field.layers), row_bytes=field.row_bytes, dtype=field.dtype)


class KvGroupReport(Report):
    """Tensors that are kept equally long, in pages of their own."""

    window: int | None
    """Tokens that are kept; null when all are."""
    bytes_per_token: int
    """Bytes of one token on one GPU, over all layers of the group."""
    fields: tuple[KvFieldReport, ...]
    """What a token leaves."""

    @classmethod
    def of(cls, group: KvGroup) -> Self:
        """What a layout's group says."""
        fields = tuple(KvFieldReport.of(field) for field in group.fields)
        return cls(window=group.window, bytes_per_token=group.bytes_per_token, fields=fields)


class DecodeReport(Report):
    """Decode speed with so many requests in flight."""

    concurrency: int
    """Requests in flight."""
    tokens_per_s: float
    """Output tokens a second, of all requests of the deployment together."""
    basis: Basis
    """`derived` from memory bandwidth (an upper bound), `fitted` to a measured row of the same engine, or `measured`."""
    price_per_million_tokens: float | None
    """Cost of a million output tokens, in the currency of the price per GPU and hour; null when none was given."""
    run: str | None
    """Id of the benchmark run that it was measured in or is fitted to; null for what is derived."""


class ProblemReport(Report):
    """One reason why the plan is refused."""

    code: str
    """What kind of problem it is: mostly a recipe key, else `memory`, `hardware`, `architecture`, `input` and the like."""
    where: str
    """The recipe key, the file or the tensor that it is about."""
    message: str
    """The reason, for people."""
    legal_alternatives: tuple[str, ...]
    """What is legal instead, nearest first; empty when nothing is."""

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """The report of a plan's problem."""
        return cls(
            code=problem.code, where=problem.where, message=problem.message, legal_alternatives=problem.legal_alternatives
        )
