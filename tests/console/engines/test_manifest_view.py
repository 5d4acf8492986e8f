"""Manifests laid out, and those that cannot be."""

from __future__ import annotations

import json
from itertools import pairwise

from built import manifest_of

from roundhouse.build.engine import Engine, read_manifest
from roundhouse.build.kv_scales import KvScaleReport
from roundhouse.console.engines.manifest_view import manifest_text, view_of
from roundhouse.console.engines.scale_chart import HEIGHT, scale_chart


def test_chosen_keys_come_first_and_stages_stand_in_their_order() -> None:
    view = view_of(manifest_of(weights="fp8").model_dump(mode="json"))
    assert view is not None
    chosen = {each.key: each.value for each in view.recipe if not each.is_default}
    assert (chosen["weights"], chosen["model"], chosen["name"]) == ("fp8", "shape:qwen3-8b", "tiny")
    assert "kv_cache" not in chosen
    assert [(each.name, each.share) for each in view.stages] == [("plan", 0.25), ("measure", 0.75)]


def test_a_memory_bar_says_what_is_kept_for_activations_where_a_fraction_sized_the_pool() -> None:
    view = view_of(manifest_of().model_dump(mode="json"))
    assert view is not None
    (memory,), (stage,) = view.memories, view.plan.stages
    assert view.plan.binding_limit == "memory_fraction"
    assert dict(memory.parts) == {
        "weights": stage.weight_bytes, "kv": stage.kv_bytes, "activations": stage.left_over_bytes, "reserve": stage.taken_bytes,
    }  # fmt: skip
    assert sum(size for _, size in memory.parts) == memory.capacity == view.plan.hardware.total_bytes


def test_nothing_is_kept_for_activations_where_something_else_sized_the_pool(tiny_engine: Engine) -> None:
    view = view_of(tiny_engine.manifest.model_dump(mode="json"))
    assert view is not None
    assert view.plan.binding_limit != "memory_fraction"
    (memory,) = view.memories
    assert [kind for kind, _ in memory.parts] == ["weights", "kv", "reserve"]
    assert sum(size for _, size in memory.parts) < memory.capacity


def test_a_manifest_of_another_version_is_not_laid_out_and_not_an_error() -> None:
    assert view_of({"format": 99}) is None
    assert view_of({**manifest_of().model_dump(mode="json"), "unheard_of": 1}) is None


def test_the_download_is_the_file(tiny_engine: Engine) -> None:
    stored = json.loads(json.dumps(tiny_engine.manifest.model_dump(mode="json")))
    assert manifest_text(stored) == (tiny_engine.folder / "engine.json").read_text()
    view = view_of(stored)
    assert view is not None
    assert view.manifest == read_manifest(tiny_engine.folder)


def test_scales_are_bars_of_their_height() -> None:
    chart = scale_chart(KvScaleReport(state="calibrated", k=(0.5, 0.25), v=(0.125, 0.0625)))
    assert chart is not None
    assert [(bar.kind, bar.layer, bar.height) for bar in chart.bars] == [
        ("k", 0, HEIGHT), ("k", 1, HEIGHT / 2), ("v", 0, HEIGHT / 4), ("v", 1, HEIGHT / 8),
    ]  # fmt: skip
    assert all(bar.y + bar.height == HEIGHT and 0 <= bar.x <= 100 - bar.width for bar in chart.bars)
    xs = sorted((bar.x, bar.x + bar.width) for bar in chart.bars)
    assert all(before[1] <= after[0] + 1e-3 for before, after in pairwise(xs))
    assert scale_chart(KvScaleReport(state="not used")) is None
