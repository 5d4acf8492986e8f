"""From workloads to aiperf's configuration, against golden files (``data/configurations``)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roundhouse.serve.benchmark.aiperf.configuration import Endpoint, configuration, root_url
from roundhouse.serve.benchmark.driver import PointWish
from roundhouse.serve.benchmark.workload import Workload

GOLDEN = Path(__file__).parent / "data" / "configurations"

WORKLOADS = {
    "fixed": Workload(),
    "spread": Workload(input_tokens=512, input_spread=128, output_tokens=128, output_spread=32),
    "shared-prefix": Workload(input_tokens=512, prefix_tokens=384, prefixes=4),
    "cancelling": Workload(cancel_share=0.07, cancel_after_s=0.5),
    "conversations": Workload(kind="conversations", file="/data/talks.jsonl", output_tokens=100),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_becomes_what_aiperf_reads(name: str) -> None:
    workload = WORKLOADS[name]
    wish = PointWish(workload, concurrency=8, requests=workload.requests(8), seed=7, timeout_s=600.0)
    dataset = Path("/scratch/conversations.jsonl") if workload.kind == "conversations" else None
    endpoint = Endpoint("http://host:9000", "some/model", Path("/models/some"), has_key=name == "fixed")
    made = configuration(wish, endpoint, Path("/scratch/out"), count_here=name == "spread", dataset=dataset)
    assert made == json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("given", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"])
def test_a_root_url_may_have_its_version(given: str) -> None:
    assert root_url(given) == "http://h:1"


def test_a_path_before_the_version_stays() -> None:
    assert root_url("https://gateway/models/v1") == "https://gateway/models"


@pytest.mark.parametrize(("concurrency", "workers"), [(1, 1), (128, 1), (129, 2), (512, 4)])
def test_many_connections_are_spread_over_workers(concurrency: int, workers: int) -> None:
    wish = PointWish(Workload(), concurrency, 1000, 0, 1.0)
    made = configuration(wish, Endpoint("u", "m", Path("t")), Path("a"), count_here=False, dataset=None)
    assert made["benchmark"]["runtime"]["workers"] == workers
