"""Runs side by side: ratios, differences in words, and doubts that are said."""

from __future__ import annotations

from typing import Any

import pytest
from benchmark_runs import CPU, made_benchmark, made_header, made_point, made_prefill

from roundhouse.serve.benchmark.comparing import compare
from roundhouse.serve.benchmark.differences import differences_of
from roundhouse.serve.benchmark.doubts import doubts_between, doubts_of
from roundhouse.serve.benchmark.points import EngineCounts
from roundhouse.serve.benchmark.records import Benchmark
from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.measurement.about import Environment, Subject


def subject(**recipe: Any) -> Subject:
    return Subject(kind="engine", name="smol", model="demo:smollm2", manifest={"recipe": {"weights": "bf16", **recipe}})


def test_ratios_are_of_shared_concurrencies_and_of_every_quantity() -> None:
    base = made_benchmark({1: [100, 102, 98], 8: [400, 404, 396]})
    other = made_benchmark({1: [200, 204, 196], 16: [700, 704, 696]}, id_="b" * 12)
    (against,) = compare([base, other]).runs
    assert {each.concurrency for each in against.quantities} == {1}
    ratios = {each.quantity: each.ratio.value for each in against.quantities}
    assert ratios["output_tokens_per_s"] == pytest.approx(2)
    assert ratios["ttft_p50"] == pytest.approx(0.5)
    assert ratios["inter_token_p50"] == pytest.approx(0.5)
    assert ratios["end_to_end_p50"] == pytest.approx(0.5)
    speed = against.quantities[0]
    assert (speed.base, speed.other, speed.ratio.low) == (100, 200, pytest.approx(196 / 102))


def test_runs_of_one_session_are_paired_by_repeat_and_only_whole_pairs_count() -> None:
    base = made_benchmark({1: [100, 50, 10, 70]}, session="s")
    other = made_benchmark({1: [200, 100, 20]}, id_="b" * 12, session="s")
    (against,) = compare([base, other]).runs
    assert against.paired
    assert against.quantities[0].ratio.value == 2
    assert against.quantities[0].ratio.repeats == 3


def test_prefill_is_compared_by_prompt_length() -> None:
    base = made_benchmark(prefill=[made_prefill(512, repeat, 1000) for repeat in range(3)])
    more = [made_prefill(512, repeat, 1500) for repeat in range(3)]
    other = made_benchmark(id_="b" * 12, prefill=[*more, made_prefill(2048, 0, 900)])
    (found,) = compare([base, other]).runs[0].prefill
    assert (found.input_tokens, found.ratio.value) == (512, pytest.approx(1.5))


def test_what_differs_is_told_by_part_and_key() -> None:
    changed = Environment(
        host="there",
        hardware=CPU.model_copy(update={"name": "Other CPU", "free_memory": 1}),
        versions={"torch": "2.10.0"},
    )
    first = made_header(subject=subject(kv_cache="bf16", calibration={"samples": 4}))
    second = made_header(
        "b" * 12,
        subject=subject(kv_cache="fp8", calibration={"samples": 8}),
        environment=changed,
        workload=Workload(name="mine", output_tokens=32),
        seed=1234,
    )
    assert [each.words for each in differences_of([first, second])] == [
        "recipe kv_cache: bf16 → fp8",
        "recipe calibration.samples: 4 → 8",
        "workload output_tokens: 64 → 32",
        "hardware host: here → there",
        "hardware name: Some CPU → Other CPU",
        "versions torch: 2.9.0 → 2.10.0",
        "load seed: 0 → 1,234",
    ]
    assert differences_of([first, first]) == []


def test_a_key_that_one_run_lacks_differs() -> None:
    first = made_header(subject=subject())
    third = made_header("c" * 12, subject=subject(kv_cache="fp8"))
    (found,) = differences_of([first, first, third])
    assert found.words == "recipe kv_cache: — → — → fp8"


def test_what_speaks_against_a_comparison_is_said() -> None:
    base = made_benchmark({1: [100, 101]})
    noisy = [made_point(1, 0, failed={"timeout": 3}, other_cores=1.0), made_point(1, 1, tokens_from="client")]
    elsewhere = Environment(host="there", hardware=None, versions={})
    other = made_benchmark(id_="b" * 12, workload=Workload(input_tokens=9), driver="vllm", environment=elsewhere).model_copy(
        update={"points": tuple(noisy), "state": "interrupted"}
    )
    warnings = "\n".join(compare([base, other]).warnings)
    for words in (
        "is interrupted",
        "disturbed 1 of 2 points",
        "3 requests failed (timeout)",
        "fewer than 3 repeats",
        "asked different things: 128 in, 64 out; 9 in, 64 out",
        "different hardware: Some CPU; not known",
        "different drivers: aiperf; vllm",
        "count tokens differently: by usage; by client and usage",
    ):
        assert words in warnings
    assert compare([made_benchmark(), made_benchmark(id_="b" * 12)]).warnings == ()


def counted(prompt: int, cached: int) -> EngineCounts:
    return EngineCounts(**{**dict.fromkeys(EngineCounts.model_fields, 0), "prompt_tokens": prompt, "cached_tokens": cached})


@pytest.mark.parametrize("at", ["points", "prefill"])
def test_prompts_that_were_in_the_cache_though_nothing_is_shared_are_doubted(at: str) -> None:
    def run(cached: int, **header: Any) -> Benchmark:
        made = made_benchmark(prefill=[made_prefill()], **header)
        found = tuple(each.model_copy(update={"engine": counted(1000, cached)}) for each in getattr(made, at))
        return made.model_copy(update={at: found})

    assert not any("prefix cache" in doubt for doubt in doubts_of(run(50)))
    (doubt,) = (doubt for doubt in doubts_of(run(60)) if "prefix cache" in doubt)
    assert "6% of all prompt tokens" in doubt
    shared = doubts_of(run(600, workload=Workload(prefix_tokens=64)))
    assert any("prefix cache" in doubt for doubt in shared) is (at == "prefill")


def test_the_same_prompts_at_the_same_url_are_doubted() -> None:
    def run(url: str | None, seed: int | None) -> Benchmark:
        return made_benchmark(subject=Subject(kind="endpoint", name="x", model="x", url=url), seed=seed)

    here = "http://host/v1"
    assert any("the same prompts" in doubt for doubt in doubts_between(run(here, 3), run(here, 3)))
    for one, other in (((here, 3), (here, 4)), ((here, 3), ("http://two/v1", 3)), ((None, 3), (None, 3)), ((here, None),) * 2):
        assert not any("the same prompts" in doubt for doubt in doubts_between(run(*one), run(*other)))


def test_runs_without_a_shared_concurrency_have_no_ratios_and_it_is_said() -> None:
    compared = compare([made_benchmark({1: [1, 1, 1]}), made_benchmark({2: [1, 1, 1]}, id_="b" * 12)])
    assert compared.runs[0].quantities == ()
    assert any("share no concurrency" in warning for warning in compared.warnings)


def test_one_run_is_no_comparison() -> None:
    with pytest.raises(ValueError, match="takes two runs"):
        compare([made_benchmark()])
