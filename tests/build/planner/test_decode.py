"""Decode speed: bytes a step reads over bandwidth, and what a measured run changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_checkpoint import TINY

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.inventory import inventory_from_shape
from roundhouse.build.planner.decode import CONCURRENCIES, DecodeModel, MeasuredRun, between_measured, price_per_million
from roundhouse.build.planner.formats import BF16
from roundhouse.build.planner.gpus import hardware_called
from roundhouse.build.planner.kv_layout import layout_for
from roundhouse.build.planner.plan import Plan, make_plan
from roundhouse.build.planner.scheme import Scheme
from roundhouse.build.planner.sharding import Parallel
from roundhouse.build.recipe import recipe_from

EXPERTS = {"architectures": ["Qwen3MoeForCausalLM"], "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64}


def model(config: dict[str, Any] | None = None, **parallel: Any) -> DecodeModel:
    shape = shape_from_config({**TINY, **(config or {})}, stored_dtype=None)
    layout = layout_for(shape, "bf16")
    parameters = inventory_from_shape(shape).parameters
    return DecodeModel(parameters, Scheme(BF16, BF16), shape, Parallel(**parallel), layout, bandwidth=1e9)


def plan(*, gpu: str = "h200", measured: tuple[MeasuredRun, ...] = (), price: float | None = None, **recipe: Any) -> Plan:
    shape = shape_from_config(TINY, stored_dtype=None)
    wanted = recipe_from({"model": "m", "target": "torch", "weights": "bf16", "max_batch_size": 64, **recipe})
    return make_plan(
        wanted, shape, inventory_from_shape(shape), hardware_called(gpu), measured=measured, price_per_gpu_hour=price
    )


def test_a_step_reads_every_weight_once_but_the_embedding() -> None:
    dense = model()
    weights = sum(2 * p.elements * p.count for p in dense.parameters if p.part != "embedding")
    step = dense.step_bytes(4, 100)
    assert (step.dense, step.experts) == (weights, 0)
    assert step.kv == 4 * 100 * dense.layout.bytes_per_token


def test_a_tied_embedding_is_read_as_the_head() -> None:
    tied, untied = model({"tie_word_embeddings": True}), model()
    assert tied.step_bytes(1, 1).dense == untied.step_bytes(1, 1).dense


def test_more_tokens_reach_more_experts_and_never_more_than_there_are() -> None:
    sparse = model(EXPERTS)
    all_experts = sum(2 * p.elements * p.count for p in sparse.parameters if p.part == "routed_expert")
    assert sparse.step_bytes(1, 0).experts == pytest.approx(all_experts * 2 / 8)
    reached = [sparse.step_bytes(n, 0).experts for n in (1, 2, 8, 64, 4096)]
    assert reached == sorted(reached)
    assert reached[-1] == pytest.approx(all_experts)


def test_windows_and_picked_rows_bound_what_a_long_context_costs() -> None:
    windowed = model({"architectures": ["MistralForCausalLM"], "sliding_window": 64})
    assert windowed.step_bytes(1, 64).kv == windowed.step_bytes(1, 400).kv
    latent = {"kv_lora_rank": 128, "q_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 32, "v_head_dim": 32}
    indexer = {"index_n_heads": 2, "index_head_dim": 128, "index_topk": 100}
    sparse = model({"architectures": ["GlmMoeDsaForCausalLM"], **latent, **indexer})
    more = sparse.step_bytes(1, 400).kv - sparse.step_bytes(1, 200).kv
    assert more == 200 * 2 * 132  # only the indexer's keys of both layers still grow


def test_attention_data_parallelism_gives_each_rank_its_own_requests() -> None:
    assert model(tensor=2, attention_data=True).step_bytes(8, 10).kv == model().step_bytes(4, 10).kv


def test_pipeline_stages_work_on_parts_of_the_requests_at_once() -> None:
    one, two = model(), model(pipeline=2)
    assert two.tokens_per_s(64, 200) == pytest.approx(64 / one._reading_time(32, 200))
    assert one.tokens_per_s(64, 200) < two.tokens_per_s(64, 200) < 2 * one.tokens_per_s(64, 200)
    assert two.tokens_per_s(1, 200) == one.tokens_per_s(1, 200)


def test_without_a_measured_run_speed_is_the_bandwidths_upper_bound_and_called_derived() -> None:
    made = plan()
    assert [row.concurrency for row in made.decode] == [1, 8, 16, 32, 64]
    assert {row.basis for row in made.decode} == {"derived"}
    speeds = [row.tokens_per_s for row in made.decode]
    assert speeds == sorted(speeds)
    assert any("upper bound" in text for text in made.assumptions)


def test_a_measured_run_is_given_as_it_was_and_fits_the_others() -> None:
    run = MeasuredRun(concurrency=8, tokens_per_s=1000.0, context=512)
    made = plan(measured=(run,))
    by_concurrency = {row.concurrency: row for row in made.decode}
    assert (by_concurrency[8].tokens_per_s, by_concurrency[8].basis) == (1000.0, "measured")
    assert by_concurrency[16].basis == "fitted"
    assert 1000.0 < by_concurrency[16].tokens_per_s < plan().decode[2].tokens_per_s


def test_a_fit_reproduces_what_it_was_fitted_to() -> None:
    dense = model()
    run = MeasuredRun(concurrency=8, tokens_per_s=dense.tokens_per_s(8, 100) / 3, context=100)
    fitted = replace(dense, t0=dense.fit_t0(run))
    assert fitted.tokens_per_s(8, 100) == pytest.approx(run.tokens_per_s)
    slow = MeasuredRun(concurrency=8, tokens_per_s=fitted.tokens_per_s(8, 100) / 2, context=100)
    slower = replace(fitted, kv_time_factor=fitted.fit_kv_time_factor(slow))
    assert slower.tokens_per_s(8, 100) == pytest.approx(slow.tokens_per_s)


def test_a_run_faster_than_the_bound_does_not_make_time_negative() -> None:
    dense = model()
    assert dense.fit_t0(MeasuredRun(concurrency=1, tokens_per_s=1e9, context=1)) == 0


def test_the_run_is_named_in_every_row_and_in_what_is_taken_for_granted() -> None:
    made = plan(measured=(MeasuredRun(8, 1000.0, 200, run="0123456789ab"),))
    assert made.decode_context == 200
    assert [row.basis for row in made.decode] == ["fitted", "measured", "fitted", "fitted", "fitted"]
    assert {row.run for row in made.decode} == {"0123456789ab"}
    assert sum("benchmark run 0123456789ab" in text for text in made.assumptions) == 2
    assert {row.run for row in plan().decode} == {None}


def test_a_measured_row_speaks_for_requests_of_about_its_length() -> None:
    wanted = recipe_from({"model": "m", "target": "torch", "weights": "bf16", "max_batch_size": 64})
    shape = shape_from_config(TINY, stored_dtype=None)
    runs = (MeasuredRun(3, 1000.0, 200, run="r"),)
    for tokens, bases in ((210, {3: "measured"}), (400, {})):
        made = make_plan(
            wanted, shape, inventory_from_shape(shape), hardware_called("h200"), request_tokens=tokens, measured=runs
        )
        assert made.decode_context == tokens
        assert {row.concurrency: row.basis for row in made.decode if row.basis != "fitted"} == bases


def test_the_fixed_time_is_that_of_the_lowest_concurrency() -> None:
    runs = (MeasuredRun(16, 9000.0, 200), MeasuredRun(1, 500.0, 200))
    alone = plan(measured=runs[1:])
    both = {row.concurrency: row for row in plan(measured=runs).decode}
    assert [row.tokens_per_s for row in alone.decode if row.concurrency == 32] == [both[32].tokens_per_s]
    assert (both[16].basis, both[16].tokens_per_s) == ("measured", 9000.0)


def steps(t0: float, slope: float, *concurrencies: int) -> tuple[MeasuredRun, ...]:
    """Measured rows whose step times grow evenly."""
    return tuple(MeasuredRun(n, n / (t0 + slope * n), 200, run="r") for n in concurrencies)


def test_where_the_speed_of_memory_is_not_known_what_lies_between_measured_rows_is_fitted() -> None:
    made = plan(gpu="cpu", kv_cache_tokens=64 * 512, measured=steps(0.02, 0.005, 4, 8, 40), price=3.6)
    assert [(row.concurrency, row.basis) for row in made.decode] == [
        (4, "measured"),
        (8, "measured"),
        (16, "fitted"),
        (32, "fitted"),
        (40, "measured"),
    ]
    assert {row.run for row in made.decode} == {"r"}
    assert made.decode[2].tokens_per_s == pytest.approx(16 / (0.02 + 0.005 * 16))
    assert made.decode[0].price_per_million_tokens == pytest.approx(3.6 / 3600 / 100 * 1e6)
    (fitted,) = (text for text in made.assumptions if "fitted" in text)
    assert "between the concurrencies that benchmark run r measured" in fitted


def test_measured_rows_beyond_what_fits_bound_what_is_fitted_and_have_none_themselves() -> None:
    made = plan(gpu="cpu", kv_cache_tokens=20 * 512, measured=steps(0.02, 0.005, 1, 512))
    assert [(row.concurrency, row.basis) for row in made.decode[:2]] == [(1, "measured"), (8, "fitted")]
    assert {row.basis for row in made.decode[1:]} == {"fitted"}
    assert made.decode[-1].concurrency < 64


def test_one_measured_concurrency_has_its_row_alone() -> None:
    made = plan(gpu="cpu", kv_cache_tokens=64 * 512, measured=steps(0.02, 0.005, 8))
    assert [(row.concurrency, row.basis) for row in made.decode] == [(8, "measured")]
    assert not any("fitted" in text for text in made.assumptions)


@given(st.lists(st.tuples(st.integers(1, 64), st.floats(1e-3, 1e6)), min_size=1, max_size=6, unique_by=lambda pair: pair[0]))
def test_what_is_fitted_between_is_positive_and_within_what_was_measured(found: list[tuple[int, float]]) -> None:
    rows = between_measured(CONCURRENCIES, 200, [MeasuredRun(n, speed, 200, run="r") for n, speed in found])
    measured = dict(found)
    assert {row.concurrency: row.tokens_per_s for row in rows if row.basis == "measured"} == measured
    assert all(row.tokens_per_s > 0 and min(measured) <= row.concurrency <= max(measured) for row in rows)


def test_concurrencies_without_room_have_no_row() -> None:
    rows = plan(kv_cache_tokens=10 * 512).decode
    assert [row.concurrency for row in rows] == [1, 8, 10]


def test_a_machine_whose_memory_speed_is_not_known_has_no_decode_rows() -> None:
    assert plan(gpu="cpu", kv_cache_tokens=512).decode == ()


def test_what_a_million_tokens_cost() -> None:
    assert price_per_million(3.6, 8, 1000.0) == pytest.approx(8.0)
    made = plan(price=3.6)
    assert made.decode[0].price_per_million_tokens == pytest.approx(3.6 / 3600 / made.decode[0].tokens_per_s * 1e6)
    assert plan().decode[0].price_per_million_tokens is None
