from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from trtllm_recipes import llm_plan

from roundhouse.build.compiled import Compilation
from roundhouse.build.engine import Engine
from roundhouse.build.events import Event, Reporter
from roundhouse.build.models.sources import read_model
from roundhouse.build.planner.gpus import hardware_called
from roundhouse.build.planner.plan import make_plan
from roundhouse.build.trtllm.llm_arguments import llm_arguments
from roundhouse.build.trtllm.llm_engine import LLM_FILE, compile_llm, llm_yaml, require_known
from roundhouse.errors import BuildError, VerifyError


@pytest.fixture
def work(tiny_engine: Engine, tmp_path: Path) -> Compilation:
    """A tiny engine for the target `trtllm-pytorch` in the making: its checkpoint is a real one."""
    recipe = tiny_engine.manifest.recipe.model_copy(
        update={
            "target": "trtllm-pytorch",
            "page_tokens": 32,
            "pipeline_parallel": 2,
            "guard": "off",
            "target_options": {"kv_cache_config.enable_block_reuse": False},
        }
    )
    model = read_model(Path(recipe.model))
    plan = make_plan(recipe, model.shape, model.inventory, hardware_called("l40s"))
    folder = tmp_path / "engine"
    folder.mkdir()
    (folder / "checkpoint").mkdir()
    for path in tiny_engine.checkpoint.iterdir():
        (folder / "checkpoint" / path.name).write_bytes(path.read_bytes())
    seen: list[Event] = []
    report = Reporter(seen.append)
    with report.stage("compile", "") as stage:
        return Compilation(plan, folder, stage, report)


def test_the_arguments_lie_beside_the_checkpoint_and_the_manifest_tells_of_them(work: Compilation) -> None:
    compiled = compile_llm(work)
    assert yaml.safe_load((work.folder / compiled.folder / LLM_FILE).read_text()) == llm_arguments(work.plan)
    assert (compiled.versions, compiled.world_size, compiled.guard) == ({"tensorrt_llm": "1.2.1"}, 2, None)
    assert compiled.options == {"kv_cache_config": {"enable_block_reuse": False}}
    assert "arguments of the LLM API" in work.stage.result
    assert work.report.warnings == []


def test_a_checkpoint_that_would_be_read_wrongly_is_refused(work: Compilation) -> None:
    path = work.folder / "checkpoint" / "hf_quant_config.json"
    given = json.loads(path.read_text())
    del given["quantization"]["exclude_modules"]
    given["quantization"]["quant_algo"] = "W4A8_AWQ"
    path.write_text(json.dumps(given))
    with pytest.raises(VerifyError, match="says quant_algo W4A8_AWQ, the recipe asks for int4_awq"):
        compile_llm(work)
    assert not work.output.exists()


def test_keys_beyond_what_fp8_holds_are_warned_about(work: Compilation) -> None:
    path = work.folder / "checkpoint" / "model.safetensors"
    tensors = load_file(path)
    tensors["model.layers.1.self_attn.k_proj.k_scale"] = torch.tensor(2.5)
    save_file(tensors, path)
    compile_llm(work)
    (said,) = work.report.warnings
    assert said.startswith(
        "1 of 4 KV scales are above 1, that of model.layers.1.self_attn.k_proj.k_scale is for values up to 1,120:"
    )


def test_the_file_says_where_the_model_needs_a_later_release_than_the_names_are_of() -> None:
    for name, said in (("glm-5.2-tp8", True), ("smollm2", False)):
        plan = llm_plan(name)
        text = llm_yaml(plan, llm_arguments(plan))
        assert ("needs 1.3.0rc8: names were checked against 1.2.1 only" in text) == said


def test_an_argument_that_upstream_does_not_know_is_refused() -> None:
    arguments = llm_arguments(llm_plan("smollm2"))
    require_known(arguments)
    arguments["kv_cache_config"]["max_tokns"] = 1
    with pytest.raises(BuildError, match="the nearest that it knows is max_tokens"):
        require_known(arguments)
