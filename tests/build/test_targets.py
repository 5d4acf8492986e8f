"""Builds for the targets of TensorRT-LLM, from recipe to engine, on a machine with a twin of it and on one without."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from trtllm_machine import TrtllmMachine, trtllm_machine

from roundhouse.build.engine import Engine
from roundhouse.build.engine_view import engine_summary, engines_table
from roundhouse.build.events import Event, StageFinished, Warned
from roundhouse.build.hardware import Hardware
from roundhouse.build.home import Home
from roundhouse.build.identity import engine_id
from roundhouse.build.models.sources import look_up
from roundhouse.build.pipeline import build
from roundhouse.build.planner.buildable import unbuilt_reason
from roundhouse.build.planner.gpus import hardware_called
from roundhouse.build.planner.plan import make_plan
from roundhouse.build.recipe import Recipe, recipe_from
from roundhouse.errors import PlanRefusedError, SetupError

H100 = hardware_called("H100-80-SXM")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrtllmMachine:
    return trtllm_machine(tmp_path, monkeypatch)


def recipe_for(model: Path, **keys: object) -> Recipe:
    quick = {"samples": 1, "tokens": 64, "alpha_step": 0.5}
    return recipe_from({"model": str(model), "max_batch_size": 8, "max_seq_len": 256, "calibration": quick, **keys})


def shown(table: object) -> str:
    from io import StringIO

    from rich.console import Console

    stream = StringIO()
    Console(file=stream, width=200).print(table)
    return stream.getvalue()


def test_an_engine_of_tensorrt_is_built_recorded_and_not_built_twice(
    machine: TrtllmMachine, tiny_model, tmp_path: Path
) -> None:
    home, seen = Home(tmp_path / "home"), list[Event]()
    recipe = recipe_for(tiny_model("llama"), target="tensorrt", page_tokens=32)
    built = build(recipe, home, seen.append)
    compiled = built.engine.manifest.compiled
    assert built.new
    assert compiled is not None
    assert compiled.guard is not None
    assert {"compiled/config.json", "compiled/rank0.engine", "compiled/guard.engine"} <= set(built.engine.manifest.files)
    built.engine.verify()
    (compiling,) = [event for event in seen if isinstance(event, StageFinished) and event.stage == "compile"]
    assert compiling.result == "1 rank by TensorRT-LLM 1.2.1"
    summary = shown(engine_summary(Engine.open(built.engine.folder)))
    assert "for tensorrt 10.14.1.48, tensorrt_llm 1.2.1 on SM 9.0, 1 rank" in summary
    assert not build(recipe, home, seen.append).new
    (built.engine.folder / "compiled" / "rank0.engine").unlink()
    with pytest.raises(Exception, match=r"rank0\.engine is missing"):
        Engine.open(built.engine.folder)


def test_an_engine_of_the_llm_api_is_built_on_any_machine(tiny_model, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    recipe = recipe_for(tiny_model("qwen3"), target="trtllm-pytorch", guard="off")
    engine = build(recipe, home, lambda event: None, hardware=H100).engine
    assert engine.manifest.compiled is not None
    assert engine.manifest.quality is not None
    assert (engine.folder / "compiled" / "llm.yaml").is_file()
    assert engine.manifest.hardware["name"] == "H100-80-SXM"


def test_an_input_that_is_quantized_already_is_taken_as_it_is_and_not_measured(
    tiny_model, build_engine, tmp_path: Path
) -> None:
    source: Engine = build_engine("llama", weights="fp8", kv_cache="bf16")
    home, seen = Home(tmp_path / "home"), list[Event]()
    recipe = recipe_for(source.checkpoint, target="trtllm-pytorch", weights="as_is", kv_cache="bf16", guard="off")
    engine = build(recipe, home, seen.append, hardware=H100).engine
    for name in ("model.safetensors", "hf_quant_config.json", "tokenizer.json"):
        assert (engine.checkpoint / name).read_bytes() == (source.checkpoint / name).read_bytes()
    manifest = engine.manifest
    assert manifest.quality is None
    assert manifest.chat
    assert manifest.modules["model.layers.*.mlp.up_proj"] == "as it was: F8_E4M3"
    assert any("quality was not measured" in event.message for event in seen if isinstance(event, Warned))
    assert "not measured" in shown(engine_summary(engine))
    assert "not measured" in shown(engines_table([engine]))
    assert "trtllm-pytorch" in shown(engines_table([engine]))


def test_a_model_that_is_not_quantized_here_is_taken_in_16_bits(tiny_model, tmp_path: Path) -> None:
    source = write_tiny_experts(tmp_path / "experts", tiny_model("llama"))
    recipe = recipe_for(source, target="trtllm-pytorch", weights="bf16", kv_cache="bf16", guard="off")
    engine = build(recipe, Home(tmp_path / "home"), lambda event: None, hardware=H100).engine
    assert (engine.checkpoint / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()
    assert engine.manifest.modules["model.layers.*.mlp.experts.*.up_proj"] == "as it was: BF16"
    assert engine.manifest.quality is None
    with pytest.raises(PlanRefusedError, match="of Qwen3MoeForCausalLM give a quantized checkpoint"):
        build(recipe.model_copy(update={"weights": "fp8"}), Home(tmp_path / "home"), lambda event: None, hardware=H100)


def write_tiny_experts(folder: Path, tokenizer_from: Path) -> Path:
    """A random two-layer mixture-of-experts model."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(
        "qwen3_moe",
        vocab_size=512,
        hidden_size=128,
        intermediate_size=256,
        moe_intermediate_size=128,
        num_experts=4,
        num_experts_per_tok=2,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=512,
    )
    AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    for file in tokenizer_from.glob("*token*"):
        shutil.copy(file, folder)
    return folder


@pytest.mark.parametrize(
    ("target", "gpu", "error", "words"),
    [
        ("tensorrt", None, SetupError, "built on the GPU that they run on, and this machine shows none"),
        ("tensorrt", H100, SetupError, "built on the GPU that they run on, and this machine shows none"),
        ("trtllm-pytorch", None, PlanRefusedError, "needs an NVIDIA GPU, and .* is none; name one with --gpu"),
    ],
)
def test_without_a_gpu_the_reason_is_said_before_the_model_is_fetched(
    target: str, gpu: Hardware | None, error: type[Exception], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    seen = list[Event]()
    with pytest.raises(error, match=words):
        build(recipe_for(tmp_path / "slow.gguf", target=target), Home(tmp_path / "home"), seen.append, hardware=gpu)
    assert seen == []


def test_another_kind_of_gpu_is_said_before_the_model_is_fetched(machine: TrtllmMachine, tmp_path: Path) -> None:
    machine.put_nvidia_smi(capability="8.9")
    with pytest.raises(SetupError, match=r"the plan is for H100-80-SXM \(SM 9\.0\), and this machine has"):
        build(recipe_for(tmp_path / "slow.gguf", target="tensorrt"), Home(tmp_path / "home"), lambda event: None, hardware=H100)


def test_a_machine_that_cannot_compile_is_told_before_anything_is_loaded(
    machine: TrtllmMachine, tiny_model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWIN_VERSION", "1.3.0rc21")
    seen = list[Event]()
    with pytest.raises(SetupError, match="use the target trtllm-pytorch"):
        build(recipe_for(tiny_model("llama"), target="tensorrt"), Home(tmp_path / "home"), seen.append)
    assert [event.stage for event in seen if isinstance(event, StageFinished)] == ["plan"]


@pytest.mark.parametrize(
    ("shape", "keys", "words"),
    [
        ("llama-3.1-8b", {"target": "tensorrt", "weights": "int4_awq"}, None),
        ("llama-3.1-8b", {"target": "tensorrt", "weights": "w4a8_awq"}, "quantizes to bf16, fp8 and int4_awq"),
        ("qwen3-30b-a3b", {"target": "tensorrt", "weights": "bf16"}, "Qwen3MoeForCausalLM is not made into engines"),
        ("qwen3-30b-a3b", {"target": "trtllm-pytorch", "weights": "bf16"}, None),
        ("qwen3-30b-a3b", {"target": "trtllm-pytorch", "weights": "fp8"}, "of Qwen3MoeForCausalLM give a quantized checkpoint"),
        ("kimi-k2.6", {"target": "trtllm-pytorch", "weights": "as_is"}, None),
        ("kimi-k2.6", {"target": "trtllm-pytorch", "weights": "w4a8_awq"}, "in w4a8_awq already, with weights as_is"),
        ("kimi-k2.6", {"target": "torch", "weights": "as_is"}, None),
    ],
)
def test_what_is_planned_and_not_built_says_why(shape: str, keys: dict[str, object], words: str | None) -> None:
    found, _ = look_up(f"shape:{shape}")
    reason = unbuilt_reason(recipe_from({"model": f"shape:{shape}", **keys}), found)
    assert reason is None if words is None else words in str(reason)


@pytest.mark.parametrize("weights", ["bf16", "fp8", "int4_awq"])
def test_a_window_that_all_layers_have_is_not_lost_in_an_engine(weights: str) -> None:
    found, _ = look_up("shape:llama-3.1-8b")
    windows = {"sliding_window": 4096, "sliding_layers": tuple(range(found.layers))}
    windowed = found.model_copy(update={"architecture": "MistralForCausalLM", **windows})
    recipe = recipe_from({"model": "shape:llama-3.1-8b", "target": "tensorrt", "weights": weights})
    assert "without sliding windows" in str(unbuilt_reason(recipe, windowed))


def test_what_is_compiled_is_part_of_the_id_and_free_memory_is_not(tiny_model) -> None:
    shape, inventory = look_up(str(tiny_model("llama")))

    def identity(*, free: int = H100.free_memory, **keys: object) -> str:
        recipe = recipe_for(tiny_model("llama"), **{"target": "trtllm-pytorch", **keys})
        plan = make_plan(recipe, shape, inventory, H100.model_copy(update={"free_memory": free}))
        return engine_id(plan.recipe, plan, model_fingerprint="m", calibration_text="", arithmetic="bfloat16")

    same = identity()
    assert identity(free=H100.free_memory // 2) == same
    changed = [{"guard": "off"}, {"max_batch_size": 4}, {"page_tokens": 64}, {"max_seq_len": 128}, {"kv_cache_tokens": 512}]
    assert len({same, *(identity(**keys) for keys in changed)}) == len(changed) + 1
    on_cpu = {"target": "torch"}
    assert identity(**on_cpu) == identity(**on_cpu, guard="off", max_batch_size=4)


def test_the_manifest_tells_which_engine_it_is(machine: TrtllmMachine, tiny_model, tmp_path: Path) -> None:
    built = build(
        recipe_for(tiny_model("mistral"), target="tensorrt", weights="fp8", guard="off"), Home(tmp_path), lambda event: None
    )
    compiled = json.loads((built.engine.folder / "engine.json").read_text())["compiled"]
    assert compiled["guard"] is None
    assert compiled["tensor_parallel"] == compiled["pipeline_parallel"] == 1
    assert compiled["versions"] == {"tensorrt_llm": "1.2.1", "tensorrt": "10.14.1.48"}
