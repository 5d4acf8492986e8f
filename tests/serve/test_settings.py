"""What an engine process is allowed to start with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shipped_plans import plan_of_shape
from typer.testing import CliRunner

from roundhouse.__main__ import app
from roundhouse.build.engine import MANIFEST, Engine, read_manifest
from roundhouse.build.home import Home
from roundhouse.build.planner.support import unsupported
from roundhouse.build.recipe import GUARD_SAMPLE, recipe_from
from roundhouse.errors import UsageError
from roundhouse.serve.settings import EngineSettings, Overrides, overrides_of


def test_pages_beyond_free_memory_are_refused_naming_both_sizes_and_the_key(tiny_engine) -> None:
    weights = tiny_engine.manifest.plan.weight_bytes_per_gpu
    page = tiny_engine.manifest.plan.kv_bytes_per_token * tiny_engine.manifest.recipe.page_tokens
    with pytest.raises(UsageError) as refused:
        EngineSettings.for_engine(tiny_engine, Overrides(kv_cache_bytes=10**13), free_memory=1 << 30)
    assert f"weights ({weights:,} B) and KV pages ({10**13 // page * page:,} B, from kv_cache_bytes)" in refused.value.message
    assert "exceed the 1,073,741,824 B of free memory" in refused.value.message
    assert refused.value.hint == "Lower kv_cache_bytes, or free memory."


@pytest.mark.parametrize("key", ["kv_cache_tokens", "kv_cache_bytes"])
@pytest.mark.parametrize("precision", ["engine", "reference"])
def test_what_fits_exactly_is_taken_and_a_byte_less_is_not(tiny_engine, key: str, precision: str) -> None:
    overrides = Overrides(**{key: 1 << 14})
    taken = EngineSettings.for_engine(tiny_engine, overrides, free_memory=1 << 30, precision=precision)
    plan = tiny_engine.manifest.plan
    needed = (plan.weight_bytes_per_gpu if precision == "engine" else 2 * plan.base_bytes) + taken.kv.bytes
    assert EngineSettings.for_engine(tiny_engine, overrides, free_memory=needed, precision=precision) == taken
    with pytest.raises(UsageError, match=f"from {key}\\) exceed the {needed - 1:,} B"):
        EngineSettings.for_engine(tiny_engine, overrides, free_memory=needed - 1, precision=precision)


def test_weights_that_do_not_fit_are_refused_without_a_memory_key(tiny_engine) -> None:
    with pytest.raises(
        UsageError, match=r"weights \([\d,]+ B\) and KV pages \(0 B, from half of free memory\) exceed"
    ) as refused:
        EngineSettings.for_engine(tiny_engine, Overrides(), free_memory=1000)
    assert refused.value.hint == "Free memory, or run a smaller engine."


def test_options_for_the_size_of_the_cache_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="--memory-fraction and --kv-cache-tokens exclude each other; keep one"):
        overrides_of(memory_fraction=0.5, kv_cache_tokens=4096, kv_cache_bytes=None)
    assert overrides_of(kv_cache_tokens=4096, max_seq_len=None) == Overrides(kv_cache_tokens=4096)


@pytest.mark.parametrize("keys", [{}, {"memory_fraction": 0.5}, {"kv_cache_tokens": 4096}])
def test_the_pool_of_a_compiled_engine_is_the_planned_one_where_as_much_is_free(
    keys: dict[str, Any], tiny_engine: Engine
) -> None:
    plan = plan_of_shape("qwen3-8b", "h100-80", target="tensorrt", **keys)
    manifest = tiny_engine.manifest.model_copy(update={"recipe": plan.recipe, "plan": plan})
    engine = Engine(tiny_engine.folder, manifest)
    kv = EngineSettings.for_engine(engine, Overrides(), free_memory=plan.hardware.free_memory).kv
    assert (kv.bytes, kv.binding_limit) == (plan.kv_bytes, plan.binding_limit)


def with_recipe(engine: Engine, folder: Path, **keys: Any) -> Engine:
    """The same engine with other words in its manifest's recipe, read back from a file."""
    manifest = json.loads((engine.folder / MANIFEST).read_text())
    manifest["recipe"] |= keys
    manifest["plan"]["recipe"] |= keys
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return Engine(engine.folder, read_manifest(folder))


def guard_of(engine: Engine, **overrides: Any) -> tuple[str, float]:
    chosen = EngineSettings.for_engine(engine, Overrides(kv_cache_tokens=512, **overrides), free_memory=1 << 30)
    return chosen.guard, chosen.guard_sample


@pytest.mark.parametrize("sample", [{}, {"guard_sample": None}, {"guard_sample": 0.0}])
def test_any_level_may_be_chosen_for_an_engine_that_was_built_for_tags(
    tiny_engine: Engine, tmp_path: Path, sample: dict[str, Any]
) -> None:
    """Engines from before contents were checked have a sample of 0.0 in their manifest."""
    engine = with_recipe(tiny_engine, tmp_path, guard="tags", **sample)
    assert guard_of(engine)[0] == "tags"
    assert guard_of(engine, guard="off")[0] == "off"
    assert guard_of(engine, guard="tags+content") == ("tags+content", GUARD_SAMPLE) == ("tags+content", 0.02)
    assert guard_of(engine, guard="tags+content", guard_sample=0.5) == ("tags+content", 0.5)


def test_any_level_may_be_chosen_for_an_engine_that_was_built_for_contents(tiny_engine: Engine, tmp_path: Path) -> None:
    engine = with_recipe(tiny_engine, tmp_path, guard="tags+content", guard_sample=0.25)
    assert guard_of(engine) == guard_of(engine, guard="tags+content") == ("tags+content", 0.25)
    assert guard_of(engine, guard_sample=0.5) == ("tags+content", 0.5)
    assert guard_of(engine, guard="tags")[0] == "tags"
    assert guard_of(engine, guard="off")[0] == "off"
    with pytest.raises(UsageError, match="guard_sample belongs to guard: tags\\+content, and guard is tags"):
        guard_of(engine, guard="tags", guard_sample=0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--guard-sample", "0.5"], "guard_sample belongs to guard: tags+content, and guard is tags"),
        (["--guard-sample", "0.5", "--guard", "off"], "guard_sample belongs to guard: tags+content, and guard is off"),
        (["--guard-sample", "0", "--guard", "tags+content"], "--guard-sample 0.0: "),
        (["--guard-sample", "1.5", "--guard", "tags+content"], "--guard-sample 1.5: "),
        (["--guard", "contents"], "--guard contents: "),
    ],
)
def test_a_sample_that_nobody_would_use_is_refused(
    tiny_engine: Engine, session_home: Home, options: list[str], message: str
) -> None:
    command = ["generate", tiny_engine.manifest.id, "x", *options, "--home", str(session_home.path)]
    refused = CliRunner().invoke(app, command).exception
    assert isinstance(refused, UsageError)
    assert message in refused.message


@pytest.mark.parametrize(("target", "runs"), [("torch", True), ("tensorrt", False), ("trtllm-pytorch", False)])
def test_contents_are_checked_on_the_torch_target_only(tiny_engine: Engine, target: str, runs: bool) -> None:
    plan = tiny_engine.manifest.plan
    recipe = recipe_from({"model": "m", "target": target, "guard": "tags+content"})
    found = [problem.message for problem in unsupported(recipe, plan.shape, plan.hardware) if problem.code == "guard"]
    assert runs == (not found)
    assert runs or "only built for the torch target" in found[0]
