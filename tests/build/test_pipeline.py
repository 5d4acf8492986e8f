"""The build from recipe to engine, with ModelOpt, on tiny models of every supported family."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from roundhouse.build.engine import Engine
from roundhouse.build.events import Event, StageFinished, Warned
from roundhouse.build.home import Home
from roundhouse.build.pipeline import build
from roundhouse.build.recipe import recipe_from
from roundhouse.build.store import EngineStore

FAMILIES = ["llama", "qwen2", "qwen3", "mistral"]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_builds_and_writes_what_the_plan_says(build_engine, family: str) -> None:
    engine: Engine = build_engine(family)
    manifest = engine.manifest
    assert manifest.modules["model.layers.0.mlp.down_proj"].startswith("int4_awq g")
    assert manifest.modules["model.embed_tokens"] == "bf16"
    assert manifest.kv_scales.state == "calibrated"
    assert len(manifest.kv_scales.k) == manifest.plan.shape.layers
    assert 0 < manifest.quality.kl < 1
    engine.verify()


@pytest.mark.parametrize("weights", ["bf16", "fp8"])
@pytest.mark.parametrize("kv_cache", ["bf16", "fp8"])
def test_other_precisions_build(build_engine, weights: str, kv_cache: str) -> None:
    manifest = build_engine("qwen2", weights=weights, kv_cache=kv_cache).manifest
    assert manifest.modules["model.layers.1.self_attn.q_proj"] == weights
    assert manifest.kv_scales.state == ("calibrated" if kv_cache == "fp8" else "not used")
    if weights == kv_cache == "bf16":
        assert manifest.quality.kl == 0


def test_tied_heads_stay_16_bit_and_are_written_once(tiny_engine: Engine) -> None:
    from roundhouse.build.models.checkpoint import read_checkpoint

    assert tiny_engine.manifest.plan.shape.tied_embeddings
    tensors = read_checkpoint(tiny_engine.checkpoint).tensors
    assert "lm_head.weight" not in tensors
    assert tensors["model.embed_tokens.weight"].dtype == "BF16"


def test_the_same_recipe_is_not_built_twice(tiny_engine: Engine, session_home: Home) -> None:
    seen: list[Event] = []
    again = build(tiny_engine.manifest.recipe, session_home, seen.append)
    assert not again.new
    assert again.engine.folder == tiny_engine.folder
    assert [event.stage for event in seen if isinstance(event, StageFinished)] == ["plan"]


def test_defaults_that_are_not_taken_are_said(tiny_engine: Engine, session_home: Home) -> None:
    recipe = tiny_engine.manifest.recipe
    asked = recipe_from(recipe.model_dump(exclude_unset=True) | {"name": "other", "guard": "off"})
    seen: list[Event] = []
    build(asked, session_home, seen.append)
    warnings = " ".join(event.message for event in seen if isinstance(event, Warned))
    assert f"is called {tiny_engine.manifest.name}, not other" in warnings
    assert "guard tags (asked: off)" in warnings


def test_what_it_computes_in_is_part_of_the_id(build_engine) -> None:
    engines = [build_engine(calibration={"arithmetic": arithmetic}) for arithmetic in ("bfloat16", "float32")]
    assert engines[0].manifest.id != engines[1].manifest.id
    assert [engine.manifest.quality.arithmetic for engine in engines] == ["bfloat16", "float32"]


def test_defaults_do_not_change_the_id_but_bytes_do(tiny_engine: Engine, session_home: Home, build_engine) -> None:
    recipe = tiny_engine.manifest.recipe
    renamed = recipe.model_copy(update={"name": "other", "guard": "off", "max_batch_size": 3, "kv_cache_tokens": 512})
    assert build(renamed, session_home, lambda event: None).engine.manifest.id == tiny_engine.manifest.id
    assert build_engine(kv_cache="bf16").manifest.id != tiny_engine.manifest.id


def test_a_build_killed_at_any_stage_leaves_no_engine_and_the_next_one_succeeds(tiny_model, tmp_path: Path) -> None:
    """kill −9 as soon as each stage has begun; then one build to the end."""
    home, model = tmp_path / "home", tiny_model("llama")
    store = EngineStore(Home(home))
    # Every stage that writes or holds something; one child per stage is killed where it stands.
    for stage in ("calibrate", "quantize", "verify", "publish"):
        child = subprocess.Popen(
            [sys.executable, "-c", _BUILD_AND_STOP_AT, str(model), str(home), stage],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == f"{stage}\n".encode()
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        assert list(store) == []
        assert store.damaged() == []
    built = build(recipe_from({"model": str(model)}), Home(home), lambda event: None)
    assert built.new
    assert [path.name for path in (home / "engines").iterdir() if path.is_dir() and path.name != ".building"] == [
        built.engine.manifest.id
    ]
    assert [path for path in (home / "engines" / ".building").iterdir() if path.is_dir()] == []


_BUILD_AND_STOP_AT = """
import sys, time
from pathlib import Path
from roundhouse.build.events import StageStarted
from roundhouse.build.home import Home
from roundhouse.build.pipeline import build
from roundhouse.build.recipe import recipe_from

def stop(event):
    if isinstance(event, StageStarted) and event.stage == sys.argv[3]:
        print(event.stage, flush=True)
        time.sleep(600)

build(recipe_from({"model": sys.argv[1]}), Home(Path(sys.argv[2])), stop)
"""
