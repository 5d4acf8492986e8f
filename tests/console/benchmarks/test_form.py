"""The form for a benchmark."""

from __future__ import annotations

import pytest
from measured import benchmark_header

from roundhouse.console.benchmarks.form import BenchmarkForm, may_be_asked_again
from roundhouse.console.benchmarks.workloads import named_workloads
from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.settings import Overrides

ENGINE = "0123456789abcdef"


def test_the_form_as_it_is_asks_for_a_sweep() -> None:
    wanted, errors = BenchmarkForm(engine=ENGINE).read()
    assert errors == {}
    assert wanted is not None
    assert (wanted.engine_id, wanted.concurrencies, wanted.repeats) == (ENGINE, (1, 8, 16, 32, 64), 3)
    assert wanted.workload.key == Workload().key
    assert wanted.seed is None, "it is drawn, or 0, where it is measured"


@pytest.mark.parametrize("text", ["1,8", "1 8", " 1;  8 ", "1, 8,"])
def test_numbers_are_written_as_one_likes(text: str) -> None:
    wanted, _ = BenchmarkForm(engine=ENGINE, concurrencies=text).read()
    assert wanted is not None
    assert wanted.concurrencies == (1, 8)


@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        ({"engine": ""}, "form", "name an engine"),
        ({"concurrencies": ""}, "concurrencies", "at least one"),
        ({"concurrencies": "1, 1"}, "form", "twice"),
        ({"concurrencies": "1, x"}, "concurrencies", "whole number"),
        ({"repeats": "1.5"}, "repeats", "whole number"),
        ({"input_tokens": "0"}, "input_tokens", "greater than or equal to 1"),
        ({"requests_each": "1000000"}, "form", "requests, and 2,000,000 at most"),
        ({"input_tokens": "1000001"}, "form", "prompts of 1,000,001 tokens are asked for, and 1,000,000 at most"),
        ({"output_tokens": "1000001"}, "form", "answers of 1,000,001 tokens are asked for, and 1,000,000 at most"),
        ({"seed": "-1"}, "seed", "greater than or equal to 0"),
        ({"prefix_tokens": "128"}, "workload", "prompts would be nothing else"),
        ({"guard": "maybe"}, "guard", "must be"),
        ({"driver": "loop", "subject": "url", "url": "http://gpu:8000"}, "form", "bare loop"),
        ({"subject": "url", "url": "gpu"}, "url", ""),
    ],
)
def test_what_is_wrong_is_said_of_the_field_it_was_typed_into(typed: dict[str, str], field: str, said: str) -> None:
    wanted, errors = BenchmarkForm(**{"engine": ENGINE, **typed}).read()  # type: ignore[arg-type]
    assert wanted is None
    assert said in errors[field]


def test_what_belongs_to_another_subject_is_left_out() -> None:
    wanted, errors = BenchmarkForm(subject="deployment", deployment="d1", engine=ENGINE, url="gpu", guard="off").read()
    assert errors == {}
    assert wanted is not None
    assert (wanted.deployment_id, wanted.engine_id, wanted.url) == ("d1", None, None)


@pytest.mark.parametrize("name", named_workloads())
def test_named_workloads_are_asked_for_whole(name: str) -> None:
    wanted, _ = BenchmarkForm(engine=ENGINE, workload=name, input_tokens="nonsense").read()
    assert wanted is not None
    assert wanted.workload == named_workloads()[name]


def test_a_run_is_asked_for_again_as_it_was() -> None:
    header = benchmark_header(workload=named_workloads()["chat"], driver="loop", seed=99)
    wanted, errors = BenchmarkForm.again(header).read()
    assert errors == {}
    assert wanted is not None
    assert wanted.engine_id == header.subject.engine_id
    assert (wanted.workload, wanted.concurrencies, wanted.prefill_lengths) == (
        header.workload, header.concurrencies, header.prefill_lengths,
    )  # fmt: skip
    assert (wanted.seed, wanted.driver, wanted.repeats) == (99, "loop", 3)


def test_what_an_engine_ran_with_is_asked_for_again() -> None:
    header = benchmark_header()
    settings = {"guard": "off", "kernels": "torch", "prefix_reuse": False, "max_batch_size": 4, "kv": {"tokens": 640}}
    subject = header.subject.model_copy(update={"settings": settings})
    wanted, _ = BenchmarkForm.again(header.model_copy(update={"subject": subject})).read()
    assert wanted is not None
    assert wanted.overrides == Overrides(
        guard="off", kernels="torch", prefix_reuse=False, max_batch_size=4, kv_cache_tokens=640
    )
    assert BenchmarkForm.again(header).guard == "", "what the recipe says is left to it"


def test_what_was_measured_elsewhere_or_with_a_file_is_not_asked_for_again() -> None:
    assert may_be_asked_again(benchmark_header())
    assert not may_be_asked_again(benchmark_header(imported_from="result.json"))
    assert not may_be_asked_again(benchmark_header(workload=Workload(kind="conversations", file="/talk.jsonl")))


def test_a_run_without_a_seed_leaves_the_field_empty() -> None:
    assert BenchmarkForm.again(benchmark_header(seed=None)).seed == ""
