"""The published tables once more, by the planner's own functions: predicted beside published, with the error.

No target's legality is asked: what was measured somewhere was possible there.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel, ConfigDict

from .decode import DecodeModel, MeasuredRun
from .published_case import Case, given
from .published_tables import Basis, PublishedNumber, PublishedTables, Section, read_tables

__all__ = ["PublishedRow", "published_rows", "rows_of"]

_UNITS = {"million": 1e6, "billion": 1e9, "GB": 1e9, "GiB": 2**30}
"""What a unit is in parameters or bytes; the others are 1."""


class PublishedRow(BaseModel):
    """A published number beside what the planner makes of its settings, both in ``unit``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    section: Section
    model: str
    """A shipped shape."""
    what: str
    settings: str
    """In words; fitted constants are among them."""
    unit: str
    predicted: float | None
    published: float
    error_percent: float | None
    """Of the prediction: above (+) or below (-) what was published."""
    tolerance_percent: float | None
    """How far the prediction may be off; None where there is none."""
    basis: Basis
    source: str
    note: str | None

    @property
    def is_within(self) -> bool:
        """Whether the prediction, where there is one, is as near as it should be."""
        if self.error_percent is None or self.tolerance_percent is None:
            return self.predicted is None
        return abs(self.error_percent) <= self.tolerance_percent


def published_rows() -> list[PublishedRow]:
    """Every published number with its prediction, in the order of the tables."""
    return rows_of(read_tables())


def rows_of(tables: PublishedTables) -> list[PublishedRow]:
    """Predict every number of the tables, fitting what their settings say is fitted."""
    predictor = _Predictor(tables)
    return [predictor.row(name, number) for name, number in tables.rows.items()]


class _Predictor:
    def __init__(self, tables: PublishedTables) -> None:
        self._numbers = tables.rows
        self._cases = {name: Case(settings) for name, settings in tables.settings.items()}

    def row(self, name: str, number: PublishedNumber) -> PublishedRow:
        case, predicted = self._cases[number.settings], self._predicted(number)
        return PublishedRow(
            id=name,
            section=number.section,
            model=case.settings.shape,
            what=number.what,
            settings=self._words(case),
            unit=number.unit,
            predicted=predicted,
            published=number.published,
            error_percent=None if predicted is None else (predicted / number.published - 1) * 100,
            tolerance_percent=number.tolerance_percent,
            basis=number.basis,
            source=number.source,
            note=number.note,
        )

    def _predicted(self, number: PublishedNumber) -> float | None:
        if number.ratio_of is not None:
            above, below = (given(self._predicted(self._numbers[name]), name) for name in number.ratio_of)
            return above / below
        value = self._value(number)
        return None if value is None else value / number.shared_by / _UNITS.get(number.unit, 1)

    def _value(self, number: PublishedNumber) -> float | None:
        case = self._cases[number.settings]
        match number.quantity:
            case None:
                return None
            case "parameters":
                return case.inventory.elements
            case "parameters_with_mtp":
                return sum(parameter.elements * parameter.count for parameter in case.inventory.parameters)
            case "checkpoint":
                return case.checkpoint_bytes
            case "kv_bytes_per_token":
                return case.kv_bytes_per_token
            case "kv_tokens":
                if case.settings.kv_pool_gib is not None:
                    return case.settings.kv_pool_gib * 2**30 / case.kv_bytes_per_token
                return case.kv_tokens(given(self._memory_fraction(case), "memory_fraction"))
            case "decode":
                return self._decode_model(case).tokens_per_s(number.concurrency, given(case.settings.context, "context"))

    def _memory_fraction(self, case: Case) -> float | None:
        if case.settings.memory_fraction_from is None:
            return case.settings.memory_fraction
        fitted_to = self._numbers[case.settings.memory_fraction_from]
        return self._cases[fitted_to.settings].memory_fraction_for(fitted_to.published)

    def _decode_model(self, case: Case) -> DecodeModel:
        model, settings = case.decode_model(), case.settings
        if settings.t0_from is not None:
            fitted_to, run = self._run(settings.t0_from)
            model = replace(model, t0=fitted_to.decode_model().fit_t0(run))
        if settings.kv_time_from is not None:
            model = replace(model, kv_time_factor=model.fit_kv_time_factor(self._run(settings.kv_time_from)[1]))
        return model

    def _run(self, name: str) -> tuple[Case, MeasuredRun]:
        number = self._numbers[name]
        case = self._cases[number.settings]
        return case, MeasuredRun(number.concurrency, number.published, given(case.settings.context, "context"))

    def _words(self, case: Case) -> str:
        """What the settings name, in words; defaults that nobody chose are left out."""
        settings, chosen = case.settings, case.settings.model_fields_set
        parts = [settings.engine]
        if settings.gpu:
            parts.append(f"{settings.tensor_parallel} × {settings.gpu}")
        elif settings.tensor_parallel > 1:
            parts.append(f"tensor parallel {settings.tensor_parallel}")
        if "linear" in chosen:
            experts = "" if settings.routed == settings.linear else f"{settings.routed} routed experts, rest "
            parts.append(f"weights {experts}{settings.linear}")
        if settings.absorbed != "none":
            parts.append(f"absorbed copies: {settings.absorbed}")
        if "kv_cache" in chosen:
            parts.append(f"KV {settings.kv_cache}" + (f" in the {settings.kv_layout} layout" if "kv_layout" in chosen else ""))
        if count := settings.indexer_layers:
            parts.append(f"{count.held} indexers held, keys of {count.read} read")
        if settings.kv_pool_gib is not None:
            parts.append(f"{settings.kv_pool_gib:.2f} GiB of KV a GPU")
        if (fraction := self._memory_fraction(case)) is not None:
            fitted = " (fitted)" if settings.memory_fraction_from else ""
            parts.append(f"{fraction:.3g}{fitted} of {settings.free_gib} GiB free")
        if settings.context is not None:
            parts.append(f"requests of {settings.context:,} tokens")
        if settings.t0_from is not None:
            model = self._decode_model(case)
            parts.append(f"t0 {model.t0 * 1e3:.2f} ms (fitted)")
            if settings.kv_time_from is not None:
                parts.append(f"reading KV takes {model.kv_time_factor:.2f} × what its bytes would (fitted)")
        return ", ".join(part for part in parts if part)
