"""The tensorrt target's compiler with a twin of TensorRT-LLM in its children: what they are given, say and leave."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest
from trtllm_machine import TWIN, TrtllmMachine, trtllm_machine
from verified_checkpoints import VerifiedCheckpoint

from roundhouse.build.compile import compiler_for
from roundhouse.build.compiled import COMPILED, Compilation, Compiled
from roundhouse.build.engine import CHECKPOINT
from roundhouse.build.events import Event, Reporter, StageProgress, Warned
from roundhouse.build.planner.plan import Plan, make_plan
from roundhouse.build.trtllm.checkpoint_config import FAMILIES
from roundhouse.build.trtllm.interpreter import find_python
from roundhouse.build.trtllm.upstream import check_fields, parameters_of
from roundhouse.errors import BuildError, EngineError, SetupError

BUILD = "tensorrt_llm.builder.BuildConfig"


class Bench:
    """A machine with TensorRT-LLM's twin, and an engine in the making."""

    def __init__(self, verified: VerifiedCheckpoint, folder: Path, **keys: object) -> None:
        recipe = verified.plan.recipe.model_copy(update=keys)
        self.plan: Plan = make_plan(recipe, verified.model.shape, verified.model.inventory, verified.plan.hardware)
        assert self.plan.legal, self.plan.problems
        self.folder = folder
        (folder / CHECKPOINT).symlink_to(verified.folder)
        self.seen: list[Event] = []
        self.report = Reporter(self.seen.append)

    def compile(self) -> Compiled:
        with self.report.stage("compile", "") as stage:
            compiled = compiler_for(self.plan)(Compilation(self.plan, self.folder, stage, self.report))
        assert compiled is not None
        return compiled

    @property
    def output(self) -> Path:
        return self.folder / COMPILED


@pytest.fixture(autouse=True)
def machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> TrtllmMachine:
    return trtllm_machine(tmp_path_factory.mktemp("machine"), monkeypatch)


@pytest.fixture
def llama(checkpoint_of) -> VerifiedCheckpoint:
    return checkpoint_of("llama")


def test_every_rank_is_built_in_a_process_of_its_own(llama: VerifiedCheckpoint, tmp_path: Path) -> None:
    bench = Bench(llama, tmp_path, tensor_parallel=2, pipeline_parallel=2, target_options={"plugin_config.gemm_plugin": "auto"})
    compiled = bench.compile()
    files = {"config.json", "guard.engine", "model.cache", *(f"rank{rank}.engine" for rank in range(4))}
    assert {path.name for path in bench.output.iterdir()} == files
    assert {path.name for path in tmp_path.iterdir()} == {CHECKPOINT, COMPILED}
    engines = [json.loads((bench.output / f"rank{rank}.engine").read_text()) for rank in range(4)]
    assert [engine["rank"] for engine in engines] == [0, 1, 2, 3]
    assert len({engine["weights"] for engine in engines}) == 4
    assert {engine["device"] for engine in engines} == {"0", "1"}
    assert compiled.versions == {"tensorrt_llm": "1.2.1", "tensorrt": "10.14.1.48"}
    assert (compiled.world_size, compiled.compute_capability, compiled.timing_cache) == (4, "9.0", "model.cache")
    assert compiled.options == {"plugin_config": {"gemm_plugin": "auto"}}


def test_the_builder_is_told_what_the_recipe_says(llama: VerifiedCheckpoint, tmp_path: Path) -> None:
    bench = Bench(llama, tmp_path, page_tokens=64, max_num_tokens=512, target_options={"opt_num_tokens": 128})
    bench.compile()
    written = json.loads((bench.output / "config.json").read_text())
    config = written["build_config"]
    assert check_fields(BUILD, config) == []
    limits = ("max_batch_size", "max_input_len", "max_seq_len", "max_num_tokens", "opt_num_tokens", "max_beam_width")
    assert [config[key] for key in limits] == [8, 256, 256, 512, 128, 1]
    plugins = config["plugin_config"]
    assert plugins["tokens_per_block"] == 64
    assert plugins["dtype"] == written["pretrained_config"]["dtype"] == "bfloat16"


@pytest.mark.parametrize(
    ("keys", "paged", "fp8", "fused"),
    [
        ({}, False, False, False),
        ({"kv_cache": "bf16"}, True, False, False),
        ({"weights": "bf16", "kv_cache": "bf16"}, True, False, True),
        ({"weights": "fp8"}, True, True, True),
        ({"weights": "fp8", "kv_cache": "bf16"}, True, False, True),
    ],
    ids=str,
)
def test_what_an_engine_cannot_do_is_in_its_config_and_said(
    checkpoint_of, tmp_path: Path, keys: dict[str, object], paged: bool, fp8: bool, fused: bool
) -> None:
    bench = Bench(checkpoint_of("llama", **keys), tmp_path)
    bench.compile()
    plugins = json.loads((bench.output / "config.json").read_text())["build_config"]["plugin_config"]
    assert (plugins["use_paged_context_fmha"], plugins["use_fp8_context_fmha"], plugins["use_fused_mlp"]) == (paged, fp8, fused)
    warned = [event.message for event in bench.seen if isinstance(event, Warned)]
    assert any("takes prompts whole" in message for message in warned) != paged


@pytest.mark.parametrize("option", [{"use_paged_context_fmha": True}, {"context_fmha": False}], ids=str)
def test_what_the_builder_turns_off_is_said_though_it_was_asked_for(
    llama: VerifiedCheckpoint, tmp_path: Path, option: dict[str, bool]
) -> None:
    bench = Bench(llama, tmp_path, target_options={"plugin_config": option})
    bench.compile()
    assert any("takes prompts whole" in event.message for event in bench.seen if isinstance(event, Warned))


def test_progress_is_what_the_ranks_say(llama: VerifiedCheckpoint, tmp_path: Path) -> None:
    bench = Bench(llama, tmp_path, tensor_parallel=2)
    bench.compile()
    steps = [(event.done, event.total) for event in bench.seen if isinstance(event, StageProgress)]
    assert steps == [(done, 14) for done in range(1, 15)]


def test_the_guard_is_built_for_the_largest_batch_and_pool(llama: VerifiedCheckpoint, tmp_path: Path) -> None:
    bench = Bench(llama, tmp_path)
    guard = bench.compile().guard
    assert guard is not None
    shapes = json.loads((bench.output / guard.file).read_text())
    assert shapes["page_table"] == [guard.rows, guard.columns] == [8, 8]
    assert shapes["page_tags"] == [guard.pages]
    assert guard.pages >= bench.plan.pages
    assert guard.plugin == "library"


def test_without_a_guard_nothing_of_it_is_built_or_needed(
    llama: VerifiedCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROUNDHOUSE_GUARD_PLUGIN")
    bench = Bench(llama, tmp_path, guard="off")
    assert bench.compile().guard is None
    assert not (bench.output / "guard.engine").exists()


def test_a_rank_that_fails_says_why_and_ends_the_others(
    llama: VerifiedCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWIN_FAILS_AT", "1")
    with pytest.raises(BuildError, match=r"rank 1 failed \(exit code 1\)") as error:
        Bench(llama, tmp_path, tensor_parallel=2).compile()
    assert "Could not find any implementation for node" in error.value.message
    assert "RuntimeError: Engine building failed" in error.value.message
    assert {path.name for path in tmp_path.iterdir()} == {CHECKPOINT}


def test_a_machine_that_cannot_build_is_told_before_anything_is_spent(
    llama: VerifiedCheckpoint, machine: TrtllmMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> str:
        with pytest.raises(SetupError) as error:
            compiler_for(llama.plan)
        return str(error.value)

    compiler_for(llama.plan)
    with monkeypatch.context() as changed:
        changed.delenv("ROUNDHOUSE_GUARD_PLUGIN")
        assert "ROUNDHOUSE_GUARD_PLUGIN names none" in refused()
    with monkeypatch.context() as changed:
        changed.setenv("TWIN_VERSION", "1.3.0")
        assert "has no engine path (it ended with 1.3.0rc20); use the target trtllm-pytorch" in refused()
    with monkeypatch.context() as changed:
        changed.setenv("TWIN_IMPORT_FAILS", "1")
        assert "has no TensorRT-LLM that can be imported: ImportError: libth_common.so: undefined symbol" in refused()
    with monkeypatch.context() as changed:
        changed.delenv("ROUNDHOUSE_TRTLLM_PYTHON")
        assert "TensorRT-LLM is not installed in this environment" in refused()
    machine.put_nvidia_smi(capability="8.9")
    assert "(SM 9.0), and this machine has NVIDIA H100 80GB HBM3 (SM 8.9)" in refused()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "this machine shows none" in refused()


def test_paths_that_start_here_are_found_where_the_ranks_start(
    llama: VerifiedCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, engine = tmp_path / "here", tmp_path / "engine"
    here.mkdir()
    engine.mkdir()
    monkeypatch.chdir(here)
    (here / "python").symlink_to(os.environ["ROUNDHOUSE_TRTLLM_PYTHON"])
    monkeypatch.setenv("ROUNDHOUSE_TRTLLM_PYTHON", "./python")
    bench = Bench(llama, engine, target_options={"input_timing_cache": "timings"})
    with pytest.raises(SetupError, match=r"input_timing_cache: .*/here/timings is no file"):
        bench.compile()
    (here / "timings").write_bytes(b"")
    bench.compile()
    config = json.loads((bench.output / "config.json").read_text())["build_config"]
    assert config["input_timing_cache"] == str(here / "timings")
    # A link to a Python is another Python: a virtual environment's is one.
    assert find_python() == here / "python"


def test_an_engine_of_another_version_gpu_or_size_is_refused(machine: TrtllmMachine) -> None:
    from roundhouse.build.trtllm.host import require_host
    from roundhouse.build.trtllm.interpreter import find_installation

    machine.put_nvidia_smi(capability="8.9", devices=1)
    compiled = Compiled(
        versions={"tensorrt_llm": "0.9.0"},
        compute_capability="8.0",
        tensor_parallel=2,
        pipeline_parallel=1,
        guard=None,
        options={},
    )
    installation = find_installation("tensorrt")
    with pytest.raises(EngineError) as error:
        require_host(compiled, installation)
    assert "built by TensorRT-LLM 0.9.0, and here is 1.2.1" in error.value.message
    assert "built for SM 8.0, and this machine has SM 8.9" in error.value.message
    assert "2 ranks, and here are 1 GPUs" in error.value.message
    here = {"versions": {"tensorrt_llm": "1.2.1"}, "compute_capability": "8.9", "tensor_parallel": 1}
    require_host(compiled.model_copy(update=here), installation)


def test_the_twin_is_called_as_upstream_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What our scripts call of the twin has the parameters that are recorded of upstream, by name, order and default."""
    monkeypatch.syspath_prepend(str(TWIN))
    try:
        builder, models = import_module("tensorrt_llm.builder"), import_module("tensorrt_llm.models")
        calls = {
            "tensorrt_llm.builder.build": builder.build,
            "tensorrt_llm.builder.Engine.__init__": builder.Engine,
            "tensorrt_llm.builder.Engine.save": builder.Engine.save,
            "tensorrt_llm.logger.logger.set_level": import_module("tensorrt_llm.logger").logger.set_level,
            "tensorrt_llm.models.modeling_utils.PretrainedConfig.from_json_file": import_module(
                "tensorrt_llm.models.modeling_utils"
            ).PretrainedConfig.from_json_file,
            "tensorrt_llm.models.modeling_utils.PretrainedModel.from_checkpoint": models.Model.from_checkpoint,
        }
        for name, call in calls.items():
            recorded = parameters_of(name)
            answers = [each for each in signature(call).parameters.values() if each.name != "self"]
            kinds = ["keyword" if each.kind is each.KEYWORD_ONLY else "plain" for each in answers]
            assert [each.name for each in answers] == [each.name for each in recorded], name
            assert [each.default is each.empty for each in answers] == [each.required for each in recorded], name
            assert kinds == [each.kind for each in recorded], name
        assert set(models.MODEL_MAP) == set(FAMILIES)
    finally:
        for module in [name for name in sys.modules if name.partition(".")[0] == "tensorrt_llm"]:
            del sys.modules[module]
