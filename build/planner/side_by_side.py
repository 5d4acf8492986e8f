"""Several plans as columns of short cells, with a mark, which survives copying, on every row that differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from ..terminal import byte_text
from .report import PlanReport
from .view_facts import (
    binding_limit_text,
    devices_text,
    parallelism_text,
    parameters_text,
    price_text,
    speed_text,
    verdict_text,
    weights_text,
)

__all__ = ["SideBySide", "brief_facts"]

_LABEL_WIDTH, _COLUMN_WIDTH = 24, 26
"""Characters that the labels take, and the fewest that a plan's column is worth reading with."""


@dataclass(frozen=True)
class SideBySide:
    """Label → one text for each plan, in as many tables under each other as the width asks for."""

    facts: dict[str, list[str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        at_once = max(1, (options.max_width - _LABEL_WIDTH) // _COLUMN_WIDTH)
        count = len(next(iter(self.facts.values())))
        for first in range(0, count, at_once):
            plans = range(first, min(first + at_once, count))
            heads = (f"plan {plan + 1}" for plan in plans)
            table = Table("", "", *heads, box=SIMPLE, show_edge=False, padding=(0, 1, 0, 0))
            for label, values in self.facts.items():
                differs = len(set(values)) > 1
                name = Text(label, style="bold" if differs else "", no_wrap=True)
                table.add_row("≠" if differs else "", name, *(Text(values[plan], overflow="fold") for plan in plans))
            yield Text()
            yield table


def brief_facts(reports: Sequence[PlanReport]) -> dict[str, list[str]]:
    """Label → one short text for each plan; a dash where a plan does not say what another one says."""
    each = [_brief(report) for report in reports]
    labels = dict.fromkeys(label for facts in each for label in facts)
    return {label: [facts.get(label, "–") for facts in each] for label in labels}


def _brief(report: PlanReport) -> dict[str, str]:
    recipe, context = report.recipe, report.kv_tokens_context
    facts = {
        "verdict": verdict_text(report),
        "parameters": parameters_text(report),
        "target": report.target,
        "role": recipe.role,
        "hardware": devices_text(report),
        "parallelism": parallelism_text(report),
        "weights": weights_text(report),
        "checkpoint": byte_text(report.checkpoint_bytes),
        "weights in memory": byte_text(report.weight_bytes_per_gpu),
        "KV cache": recipe.kv_cache,
        "KV bytes a token": f"{report.kv_bytes_per_token:,} B",
        "KV pool": byte_text(report.kv_bytes),
        "set by": binding_limit_text(report),
        "pages": f"{report.pages:,} of {report.page_tokens} tokens",
        "KV tokens": f"{report.kv_tokens:,}",
        "in requests of": f"{context:,} tokens" if context else "any length",
        "requests that fit": f"{report.requests_that_fit:,} of {report.request_tokens:,} tokens",
        "worst case": f"{recipe.max_batch_size:,} of {report.max_seq_len:,} tokens",
        "worst case takes": f"{byte_text(report.worst_case_bytes)}, {'fits' if report.worst_case_fits else 'does not fit'}",
        "decode, requests of": f"{report.decode_context:,} tokens",
    }
    for row in report.decode:
        facts[f"decode, {row.concurrency} at once"] = f"{speed_text(row)} tokens/s, {row.basis}"
        if row.price_per_million_tokens is not None:
            facts[f"price, {row.concurrency} at once"] = f"{price_text(row)} per million tokens"
    return facts
