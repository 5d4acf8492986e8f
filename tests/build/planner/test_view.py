from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shipped_plans import GOLDEN, golden_texts, plan_of_shape, text_of, windowed_plan

from roundhouse.build.planner.gpus import gpu_names
from roundhouse.build.planner.memory_bar import memory_bars
from roundhouse.build.planner.plan import Plan
from roundhouse.build.planner.report import report_of
from roundhouse.build.planner.report_parts import StageReport
from roundhouse.build.planner.view import compare_view, plan_view

GIB = 1 << 30
WIDTHS = (80, 100, 140)
PLANS: dict[str, Callable[[], Plan]] = {
    "legal": lambda: plan_of_shape("llama-3.1-8b", "l40s", price=1.2),
    "refused": lambda: plan_of_shape("kimi-k2.6", "h200", tensor_parallel=8, guard="off"),
    "too large": lambda: plan_of_shape("kimi-k2.6", "h200"),
    "staged": lambda: plan_of_shape("deepseek-v3", "h200", tensor_parallel=2, pipeline_parallel=4),
    "windows": windowed_plan,
    "cpu": lambda: plan_of_shape("smollm2-135m", "cpu", target="torch"),
}


@pytest.fixture(params=PLANS)
def made(request: pytest.FixtureRequest) -> Plan:
    return PLANS[request.param]()


def words(plan: Plan, width: int = 140) -> str:
    """The view with every run of blanks as one, so that wrapped sentences are found."""
    return " ".join(text_of(plan_view(plan), width).split())


def row_of(text: str, label: str) -> str:
    """The line of a table that starts with a label, without its first column's mark."""
    (line,) = [line for line in text.splitlines() if line.lstrip("≠ ").startswith(f"{label}  ")]
    return line


def test_views_are_their_golden_files() -> None:
    views = golden_texts()
    assert set(GOLDEN.iterdir()) == set(views)
    for path, text in views.items():
        assert text == path.read_text(), f"{path.name}; if this is meant: python tests/build/support/shipped_plans.py"


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_terminal_or_ends_in_blanks(made: Plan, width: int) -> None:
    for view in (plan_view(made), compare_view([made] * 3)):
        for line in text_of(view, width).splitlines():
            assert len(line) <= width, line
            assert line == line.rstrip(), line


def test_colours_carry_nothing_that_the_characters_do_not(made: Plan) -> None:
    for view in (plan_view(made), compare_view([made, PLANS["refused"]()])):
        assert re.sub(r"\x1b\[[0-9;]*m", "", text_of(view, terminal=True)) == text_of(view)


def test_numbers_are_those_of_the_json(made: Plan) -> None:
    text, report = words(made), report_of(made)
    for count in (report.checkpoint_bytes, report.weight_bytes_per_gpu, report.kv_bytes_per_token, report.worst_case_bytes):
        assert f"{count:,} B" in text
    for count in (report.kv_tokens, report.pages, report.requests_that_fit, report.request_tokens, report.max_seq_len):
        assert f"{count:,} " in text
    assert report.binding_limit in text
    for row in report.decode:
        speed = f"{row.tokens_per_s:,.0f}" if row.tokens_per_s >= 100 else f"{row.tokens_per_s:,.1f}"
        at_most = "≤ " if row.basis == "derived" else ""
        assert f"{row.concurrency} {at_most}{speed} {row.basis}" in text


def test_gib_and_gb_are_never_mixed_up() -> None:
    text = words(plan_of_shape("kimi-k2.6", "h200", tensor_parallel=8, guard="off"))
    assert "checkpoint 554.3 GiB (595.1 GB, 595,145,305,856 B)" in text
    assert text.count(" GB") == 1
    assert "1,026.878 billion parameters" in text  # not "B", which is bytes here


def test_verdict_reasons_and_alternatives_are_in_words() -> None:
    plan = PLANS["refused"]()
    text = words(plan)
    assert f"Plan of shape:kimi-k2.6 for 8 × H200-SXM: refused, {len(plan.problems)} problem" in text
    for problem in plan.problems:
        order = ", nearest first" if len(problem.legal_alternatives) > 1 else ""
        assert f"✗ {problem.message} legal instead{order}: {', '.join(problem.legal_alternatives)}" in text
    assert "refused" not in words(PLANS["legal"]())
    assert "Verdict: legal" in words(PLANS["legal"]())


def test_warnings_and_assumptions_are_all_there(made: Plan) -> None:
    text = words(made)
    assert all(f"! {warning}" in text for warning in made.warnings)
    assert all(f"- {assumption}" in text for assumption in made.assumptions)


def test_the_knob_that_bound_is_said_with_its_value() -> None:
    assert "set by memory_fraction 0.85 " in words(plan_of_shape("llama-3.1-8b", "l40s", memory_fraction=0.85))
    assert "set by kv_cache_bytes 1,073,741,824 " in words(plan_of_shape("llama-3.1-8b", "l40s", kv_cache_bytes=GIB))


def test_with_windows_it_is_said_at_which_length_of_request() -> None:
    text = words(windowed_plan(request_tokens=4096))
    assert "in requests of 4,096 tokens" in row_of(text_of(plan_view(windowed_plan(request_tokens=4096)), 140), "KV tokens")
    assert "last 1,024 tokens: k 1,024 B × 29 layers" in text


def test_the_worst_case_is_said_to_fit_or_not() -> None:
    assert "32 × 131,072 tokens take 256.0 GiB (274,877,906,944 B): more than the pool" in words(PLANS["legal"]())
    small = plan_of_shape("llama-3.1-8b", "l40s", max_batch_size=2, max_seq_len=2048)
    assert "2 × 2,048 tokens take 256.0 MiB (268,435,456 B): fits the pool" in words(small)


def test_without_decode_rows_the_reason_is_given() -> None:
    assert "not predicted: no request of this length fits" in words(PLANS["too large"]())
    assert "not predicted: the memory bandwidth of" in words(PLANS["cpu"]())


def test_prices_are_shown_when_there_are_any() -> None:
    assert "price per million tokens" in words(PLANS["legal"]())
    assert "price" not in words(PLANS["refused"]())


def test_names_with_brackets_are_shown_as_they_are() -> None:
    plan = PLANS["legal"]()
    named = plan.model_copy(update={"recipe": plan.recipe.model_copy(update={"model": "/models/[red]llama[/]"})})
    assert "Plan of /models/[red]llama[/] for L40S" in words(named)
    assert "/models/[red]llama[/]" in text_of(compare_view([named, plan]))


def test_there_is_one_bar_for_each_stage() -> None:
    text = text_of(plan_view(PLANS["staged"]()))
    assert "Memory of each of 8 GPUs, in GiB" in text
    for stage in report_of(PLANS["staged"]()).stages:
        name = re.escape(f"layers {stage.first_layer}-{stage.last_layer}")
        assert re.search(rf"stage \d, {name} +[█▒·╳]{{50}}$", text, re.MULTILINE)
        assert re.search(rf"stage \d, {name} +{stage.weight_bytes / GIB:.2f} ", text, re.MULTILINE)


def bar_and_numbers(stage: StageReport) -> tuple[str, list[int], int]:
    """The bar, its four numbers and their total, in hundredths of a GiB."""
    bar, _, numbers = text_of(memory_bars([("", stage)], taken_by="driver")).splitlines()[:3]
    *parts, total = (round(float(number.replace(",", "")) * 100) for number in numbers.split())
    return bar.strip(), parts, total


@settings(max_examples=50)
@given(
    total=st.integers(GIB, 200 * GIB),
    taken=st.floats(0, 0.5),
    weights=st.integers(0, 300 * GIB),
    pool=st.integers(0, 300 * GIB),
)
def test_bars_have_one_length_and_their_numbers_add_up(total: int, taken: float, weights: int, pool: int) -> None:
    before = int(total * taken)
    left = total - before - weights - pool
    stage = StageReport(
        gpus=1,
        first_layer=0,
        last_layer=1,
        weight_bytes=weights,
        kv_bytes=pool,
        left_over_bytes=left,
        taken_bytes=before,
    )
    bar, parts, said = bar_and_numbers(stage)
    assert len(bar) == 50
    assert said == round(total / GIB * 100)
    assert sum(parts) == said
    exact = (weights, pool, left, before)
    assert all(abs(part - each / GIB * 100) <= 1.01 for part, each in zip(parts, exact, strict=True))
    assert ("!" in bar) == (left < 0)
    assert ("█" in bar) == (min(weights, total - before) > 0)


@pytest.mark.parametrize("gpu", gpu_names())
def test_what_is_small_is_still_seen_in_a_bar(gpu: str) -> None:
    plan = plan_of_shape("smollm2-135m", gpu, kv_cache="bf16", weights="bf16", target="torch", kv_cache_tokens=64)
    bar, _, _ = bar_and_numbers(report_of(plan).stages[0])
    assert bar.startswith("█▒·")
    assert bar.endswith("╳")


def test_what_does_not_fit_is_drawn_behind_the_end() -> None:
    text = text_of(plan_view(PLANS["too large"]()))
    assert re.search(r"^  █+╳!+$", text, re.MULTILINE)
    assert "! more than there is" in text
    assert "more than there is" not in text_of(plan_view(PLANS["legal"]()))


def test_rows_that_differ_are_marked() -> None:
    fp8, bf16 = (plan_of_shape("llama-3.1-8b", "l40s", kv_cache=kv) for kv in ("fp8", "bf16"))
    text = text_of(compare_view([fp8, bf16]))
    for label in ("KV cache", "KV tokens", "pages"):
        assert row_of(text, label).startswith("≠")
    for label in ("target", "checkpoint", "weights in memory"):
        assert not row_of(text, label).startswith("≠")
    assert row_of(text, "KV tokens").split()[3:] == [f"{fp8.kv_tokens:,}", f"{bf16.kv_tokens:,}"]


def test_equal_plans_differ_in_nothing() -> None:
    plan = PLANS["legal"]()
    (title, *rows) = text_of(compare_view([plan, plan])).splitlines()
    assert title.startswith("2 plans")
    assert not [row for row in rows if "≠" in row]


@pytest.mark.parametrize("width", WIDTHS)
def test_many_plans_go_on_below_each_other(width: int) -> None:
    plans = [plan_of_shape("llama-3.1-8b", "l40s", memory_fraction=n / 10) for n in range(3, 10)]
    text = text_of(compare_view(plans), width)
    for number, plan in enumerate(plans, 1):
        assert f"plan {number}" in text
        assert f"memory_fraction 0.{number + 2}" in text
        assert f"{plan.kv_tokens:,}" in text


def test_a_remark_names_the_plans_that_earn_it() -> None:
    legal, refused = PLANS["legal"](), PLANS["refused"]()
    text = " ".join(text_of(compare_view([legal, refused, refused]), 140).split())
    assert f"✗ plans 2, 3: {refused.problems[0].message}" in text
    assert "! plans 2, 3: KimiK25ForConditionalGeneration needs" in text
    assert "- target trtllm-pytorch, because" in text  # all of them: nobody is named
    assert "≠ verdict legal refused, 1 problem" in text


def test_decode_rows_that_one_plan_does_not_have_are_a_dash() -> None:
    legal = PLANS["legal"]()
    text = text_of(compare_view([legal, PLANS["too large"]()]), 140)
    assert row_of(text, "decode, 8 at once").endswith("–")
    assert row_of(text, "price, 8 at once").endswith("–")
    row = next(row for row in report_of(legal).decode if row.concurrency == 8)
    assert f"{row.price_per_million_tokens:,.3f} per million tokens" in row_of(text, "price, 8 at once")
