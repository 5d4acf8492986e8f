from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from roundhouse.build.planner.published import PublishedRow, published_rows, rows_of
from roundhouse.build.planner.published_tables import IndexerLayers, PublishedTables, read_tables
from roundhouse.build.planner.published_view import published_table

ROWS = published_rows()
BY_ID = {row.id: row for row in ROWS}
PREDICTED = [row for row in ROWS if row.predicted is not None]

FITTED_TO = ("kimi-bf16-kv-1", "kimi-fp8-kv-32", "glm-fp8-1", "glm-int4-1")

ANNOUNCED = {
    "fp8_kv": {
        "tokens": [686_000, 1_370_000],
        "tok/s": [137, 731, 1106, 1558, 1489, 2192],
        "×": [1 + 0.41, 1 - 0.3, 1 - 0.044],
    },
    "int4_weights": {
        "GiB": [705, 421, 88, 52],
        "tokens": [1_180_000],
        "tok/s": [60, 425, 683, 994, 1672, 92, 1267, 10160, 8660],
        "×": [1 + 0.55],
        "points": [0.8],
    },
}
"""The numbers as they were published, gains and losses as ratios."""

CHECKS = [
    ("llama-3.1-8b", 8.03, "billion", 0.5),
    ("llama-3.1-70b", 70.55, "billion", 0.5),
    ("qwen3-8b", 8.19, "billion", 0.5),
    ("qwen3-32b", 32.76, "billion", 0.5),
    ("qwen3-30b-a3b", 30.53, "billion", 0.5),
    ("qwen3-235b-a22b", 235.09, "billion", 0.5),
    ("gpt-oss-120b", 116.8, "billion", 0.5),
    ("smollm2-135m", 134.515, "million", 0.5),
    ("deepseek-v3", 671.0, "billion", 0.5),
    ("glm-5.2", 753, "billion", 0.5),
    ("deepseek-v3", 70272, "B/token", 0.001),
    ("kimi-k2", 715072, "tokens", 0.1),
    ("glm-5.2", 55225, "B/token", 0.01),
    ("glm-5.2", 47702, "B/token", 0.01),
    ("qwen3-235b-a22b", 367404, "tokens", 0.3),
    ("glm-5.2", 1507, "GB", 0.3),
    ("glm-5.2", 756, "GB", 0.3),
    ("glm-5.2", 705, "GiB", 0.5),
    ("glm-5.2", 421, "GiB", 1),
    ("glm-5.2", 52, "GiB", 1.5),
    ("glm-5.2", 88, "GiB", 1),
    ("kimi-k2.6", 595, "GB", 0.5),
    ("kimi-k2.6", 686_000, "tokens", 3),
    ("kimi-k2.6", 686_000, "tokens", 15),
    ("kimi-k2.6", 1_370_000, "tokens", 0.5),
    ("glm-5.2", 1_180_000, "tokens", 3),
    ("kimi-k2.6", 137, "tok/s", 0.01),
    ("kimi-k2.6", 731, "tok/s", 6),
    ("kimi-k2.6", 1106, "tok/s", 6),
    ("kimi-k2.6", 1558, "tok/s", 6),
    ("kimi-k2.6", 1489, "tok/s", 0.01),
    ("kimi-k2.6", 2192, "tok/s", 12),
    ("kimi-k2.6", 2192, "tok/s", 30),
    ("kimi-k2.6", 1.41, "×", 12),
    ("glm-5.2", 60, "tok/s", 0.01),
    ("glm-5.2", 425, "tok/s", 14),
    ("glm-5.2", 683, "tok/s", 14),
    ("glm-5.2", 994, "tok/s", 14),
    ("glm-5.2", 1672, "tok/s", 14),
    ("glm-5.2", 92, "tok/s", 0.01),
    ("glm-5.2", 1267, "tok/s", 30),
]
"""(model, published number, unit, percent that a prediction may be off)."""

COMPUTED_ELSEWHERE = {
    "kimi-bf16-kv-tokens-default-fraction": 601_428,
    "kimi-bf16-kv-tokens": 694_212,
    "kimi-fp8-kv-tokens": 1_372_000,
    "glm-int4-kv-tokens": 1_165_771,
    "kimi-checkpoint": 595.1,
    "glm-fp8-checkpoint": 703.6,
    "glm-int4-checkpoint": 419.9,
    "kimi-bf16-kv-32": 1527.4,
    "kimi-fp8-kv-64": 2014.8,
    "kimi-fp8-kv-64-at-bandwidth": 2500.6,
    "glm-fp8-8": 372.8,
    "glm-fp8-64": 1660.2,
    "glm-int4-32": 1603.1,
}
"""Row → what a separate calculation by hand-written formulas gives, without norms and biases."""


def changed(tables: PublishedTables, name: str, **update: Any) -> PublishedTables:
    """The tables with one of their rows changed."""
    return tables.model_copy(update={"rows": tables.rows | {name: tables.rows[name].model_copy(update=update)}})


def with_settings(name: str, **update: Any) -> dict[str, PublishedRow]:
    """The rows that follow when one entry of settings is changed."""
    tables = read_tables()
    settings = tables.settings | {name: tables.settings[name].model_copy(update=update)}
    return {row.id: row for row in rows_of(tables.model_copy(update={"settings": settings}))}


def shown(rows: list[PublishedRow], width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(published_table(rows))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO given above
    return text


@pytest.mark.parametrize("row", PREDICTED, ids=lambda row: row.id)
def test_a_prediction_is_as_near_to_the_published_number_as_its_tolerance(row: PublishedRow) -> None:
    assert row.predicted is not None
    assert row.tolerance_percent is not None
    assert abs(row.predicted - row.published) <= row.published * row.tolerance_percent / 100
    assert row.is_within


@pytest.mark.parametrize(("model", "published", "unit", "tolerance"), CHECKS)
def test_a_known_check_is_a_row_with_its_tolerance(model: str, published: float, unit: str, tolerance: float) -> None:
    found = [row for row in PREDICTED if (row.model, row.published, row.unit) == (model, published, unit)]
    assert tolerance in [row.tolerance_percent for row in found]


@pytest.mark.parametrize(
    ("section", "unit", "number"),
    [(section, unit, number) for section, units in ANNOUNCED.items() for unit, numbers in units.items() for number in numbers],
)
def test_an_announced_number_is_a_row(section: str, unit: str, number: float) -> None:
    assert [row for row in ROWS if (row.section, row.unit) == (section, unit) and row.published == pytest.approx(number)]


def test_the_announced_lack_of_memory_is_told() -> None:
    assert any("out of memory" in (row.note or "") for row in ROWS if row.section == "fp8_kv")


@pytest.mark.parametrize(("name", "number"), COMPUTED_ELSEWHERE.items())
def test_a_prediction_agrees_with_a_separate_calculation(name: str, number: float) -> None:
    assert BY_ID[name].predicted == pytest.approx(number, rel=2e-4)


@pytest.mark.parametrize("name", FITTED_TO)
def test_a_fit_reproduces_its_own_row_and_says_so(name: str) -> None:
    row = BY_ID[name]
    assert row.predicted == pytest.approx(row.published, rel=1e-9)
    assert (row.basis, "fitted to this row" in (row.note or "")) == ("fitted", True)


def test_a_memory_fraction_can_be_fitted_exactly() -> None:
    rows = with_settings("kimi-bf16-kv", memory_fraction_from="kimi-bf16-kv-tokens")
    assert rows["kimi-bf16-kv-tokens"].predicted == pytest.approx(686_000, rel=1e-9)


def test_fitted_constants_are_named_with_the_settings() -> None:
    assert "t0 5.57 ms (fitted)" in BY_ID["kimi-bf16-kv-8"].settings
    assert "t0 14.72 ms (fitted)" in BY_ID["glm-fp8-8"].settings
    assert "t0 8.28 ms (fitted)" in BY_ID["glm-int4-32"].settings
    assert "0.846 (fitted) of 138.09 GiB free" in BY_ID["kimi-fp8-kv-tokens"].settings


@pytest.mark.parametrize("row", [row for row in PREDICTED if row.id not in FITTED_TO], ids=lambda row: row.id)
def test_a_row_with_a_wrong_published_number_is_not_within_its_tolerance(row: PublishedRow) -> None:
    assert row.predicted is not None
    assert row.tolerance_percent is not None
    for error in (1.2 * row.tolerance_percent, -1.2 * row.tolerance_percent):
        tables = changed(read_tables(), row.id, published=row.predicted / (1 + error / 100))
        wrong = next(other for other in rows_of(tables) if other.id == row.id)
        assert wrong.error_percent == pytest.approx(error)
        assert not wrong.is_within
        assert " !" in shown([wrong])


def test_a_wrong_number_in_a_row_that_is_fitted_to_shows_in_the_others() -> None:
    rows = {row.id: row for row in rows_of(changed(read_tables(), "kimi-bf16-kv-1", published=120))}
    assert rows["kimi-bf16-kv-1"].is_within
    assert not rows["kimi-bf16-kv-8"].is_within


def test_nothing_is_predicted_exactly_where_a_number_is_published_only() -> None:
    for row in ROWS:
        nothing = row.predicted is None and row.error_percent is None and row.tolerance_percent is None
        assert nothing == (row.basis == "published only")
    assert {row.id for row in ROWS if "prefill" in row.what} <= {row.id for row in ROWS if row.basis == "published only"}


def test_what_depends_on_a_fitted_constant_is_not_called_derived() -> None:
    tables = read_tables()
    for name, number in tables.rows.items():
        settings = tables.settings[number.settings]
        depends = (number.quantity == "decode" and settings.t0_from) or (
            number.quantity == "kv_tokens" and settings.memory_fraction_from
        )
        if depends or number.ratio_of:
            assert BY_ID[name].basis in ("fitted", "published only")


def test_indexers_held_count_for_memory_and_indexers_read_for_speed() -> None:
    held = with_settings("glm-int4", indexer_layers=IndexerLayers(held=21, read=21))
    read = with_settings("glm-int4", indexer_layers=IndexerLayers(held=78, read=78))
    tokens, speed = BY_ID["glm-int4-kv-tokens"].predicted, BY_ID["glm-int4-32"].predicted
    assert held["glm-int4-kv-tokens"].predicted > tokens  # type: ignore[operator]  # both are predicted
    assert read["glm-int4-kv-tokens"].predicted == tokens
    assert read["glm-int4-32"].predicted < speed  # type: ignore[operator]  # both are predicted


def test_an_ordinary_glm_holds_fewer_bytes_a_token_than_one_with_a_key_in_every_layer() -> None:
    every, own = BY_ID["glm-kv-bytes-every-layer"].predicted, BY_ID["glm-kv-bytes-own-layers"].predicted
    assert (every, own) == (78 * (576 + 132), 78 * 576 + 21 * 132)


def test_a_cache_with_scales_takes_more_than_a_plain_one() -> None:
    plain = with_settings("glm-int4", kv_layout="plain")["glm-int4-kv-tokens"]
    assert plain.predicted > BY_ID["glm-int4-kv-tokens"].predicted  # type: ignore[operator]  # both are predicted


@pytest.mark.parametrize("key", ["gpu", "context"])
def test_settings_without_what_a_speed_needs_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match=key):
        with_settings("glm-fp8", **{key: None})


def test_rows_survive_json() -> None:
    text = json.dumps([row.model_dump(mode="json") for row in ROWS])
    assert [PublishedRow.model_validate(row) for row in json.loads(text)] == ROWS


@pytest.mark.parametrize("width", [100, 160])
def test_each_row_is_one_line_of_at_most_a_hundred_columns(width: int) -> None:
    lines = [line.rstrip() for line in shown(ROWS, width).splitlines()]
    assert max(map(len, lines)) <= 100
    for row in ROWS:
        assert [line for line in lines if row.what in line and f"{row.published:,.10g}  {row.unit}" in line]


def test_the_tables_name_every_setting_note_and_basis() -> None:
    text = " ".join(shown(ROWS).split())
    for row in ROWS:
        assert " ".join(row.settings.split()) in text
        assert " ".join((row.note or "").split()) in text
        assert row.source in text
    assert "prefill speed never is" in text
    assert " !" not in text
