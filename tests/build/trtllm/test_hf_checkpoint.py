"""Real checkpoints of tiny models as TensorRT-LLM's PyTorch backend would read them, and damaged ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from trtllm_recipes import llm_plan

from roundhouse.build.engine import Engine
from roundhouse.build.models.sources import read_model
from roundhouse.build.planner.gpus import hardware_called
from roundhouse.build.planner.plan import Plan, make_plan
from roundhouse.build.trtllm.hf_checkpoint import check_hf_checkpoint, rounded_anew

Tensors = dict[str, torch.Tensor]


def plan_for(engine: Engine, **keys: Any) -> Plan:
    """The plan of a torch engine's recipe on the target `trtllm-pytorch`."""
    recipe = engine.manifest.recipe
    model = read_model(Path(recipe.model))
    changed = recipe.model_copy(update={"target": "trtllm-pytorch", "page_tokens": 32, **keys})
    return make_plan(changed, model.shape, model.inventory, hardware_called("l40s"))


@pytest.mark.parametrize("weights", ["int4_awq", "fp8", "bf16"])
@pytest.mark.parametrize("kv_cache", ["fp8", "bf16"])
def test_what_is_built_is_read_as_it_is_meant(build_engine, weights: str, kv_cache: str) -> None:
    engine = build_engine("qwen2", weights=weights, kv_cache=kv_cache)
    assert check_hf_checkpoint(engine.checkpoint, plan_for(engine)) == []


def test_fp8_scales_of_what_is_loaded_as_one_are_warned_about_where_they_differ(build_engine, tmp_path: Path) -> None:
    engine = build_engine("qwen2", weights="fp8")
    folder = tmp_path / "checkpoint"
    shutil.copytree(engine.checkpoint, folder)
    held = load_file(folder / "model.safetensors")
    for name in [name for name in held if name.endswith(".weight_scale")]:
        held[name] = torch.tensor(0.5)
    save_file(held, folder / "model.safetensors")
    assert rounded_anew(folder, plan_for(engine)) is None
    held["model.layers.1.mlp.up_proj.weight_scale"] = torch.tensor(0.25)
    save_file(held, folder / "model.safetensors")
    said = rounded_anew(folder, plan_for(engine))
    assert said is not None
    assert "(1 times, as gate_proj, up_proj of model.layers.1.mlp differ in weight_scale)" in said
    assert rounded_anew(build_engine("qwen2").checkpoint, plan_for(build_engine("qwen2"))) is None


@pytest.fixture
def damaged(build_engine, tmp_path: Path) -> Callable[..., list[str]]:
    """Copy a checkpoint, change it, and say what the PyTorch backend would make of it."""

    def damage(
        built: str,
        *,
        tensors: Callable[[Tensors], None] = lambda _: None,
        config: dict[str, Any] | None = None,
        **keys: Any,
    ) -> list[str]:
        engine = build_engine("llama", weights=built)
        folder = tmp_path / "checkpoint"
        shutil.copytree(engine.checkpoint, folder)
        held = load_file(folder / "model.safetensors")
        tensors(held)
        save_file(held, folder / "model.safetensors")
        path = folder / "hf_quant_config.json"
        given = json.loads(path.read_text())
        given["quantization"] |= config or {}
        path.write_text(json.dumps(given))
        return check_hf_checkpoint(folder, plan_for(engine, **keys))

    return damage


def test_a_scale_that_is_not_looked_for_is_named(damaged: Callable[..., list[str]]) -> None:
    def keep(tensors: Tensors) -> None:
        tensors["model.layers.0.self_attn.q_proj.pre_quant_scale"] = torch.ones(128, dtype=torch.bfloat16)

    (said,) = damaged("int4_awq", tensors=keep)
    assert said.startswith("model.layers.0.self_attn.q_proj.pre_quant_scale would not be read")


def test_a_scale_that_is_missed_is_named(damaged: Callable[..., list[str]]) -> None:
    (said,) = damaged("int4_awq", tensors=lambda tensors: tensors.pop("model.layers.1.mlp.down_proj.pre_quant_scale"))
    assert said == "model.layers.1.mlp.down_proj.pre_quant_scale is missing"


def test_scales_of_another_size_or_type_are_named(damaged: Callable[..., list[str]]) -> None:
    def change(tensors: Tensors) -> None:
        tensors["model.layers.0.mlp.up_proj.weight_scale"] = torch.ones(256, 2)
        tensors["model.layers.0.self_attn.o_proj.pre_quant_scale"] = torch.ones(128)

    said = damaged("int4_awq", tensors=change)
    assert "model.layers.0.mlp.up_proj.weight_scale has the shape [256, 2], not [256, 1]" in said
    assert "model.layers.0.self_attn.o_proj.pre_quant_scale is F32; it must have the model's type" in said


def test_a_plain_linear_that_nothing_excludes_is_named(damaged: Callable[..., list[str]]) -> None:
    def unquantize(tensors: Tensors) -> None:
        tensors["model.layers.0.mlp.up_proj.weight"] = torch.ones(256, 128, dtype=torch.bfloat16)

    (said,) = damaged("int4_awq", tensors=unquantize)
    assert said.startswith("model.layers.0.mlp.up_proj.weight is BF16: it is not quantized")


def test_excluded_modules_are_left_alone(damaged: Callable[..., list[str]]) -> None:
    def unquantize(tensors: Tensors) -> None:
        tensors["model.layers.0.mlp.up_proj.weight"] = torch.ones(256, 128, dtype=torch.bfloat16)

    assert damaged("int4_awq", tensors=unquantize, config={"exclude_modules": ["lm_head", "*up_proj"]}) == []


def test_input_scales_are_there_for_all_that_is_loaded_as_one_or_for_none(damaged: Callable[..., list[str]]) -> None:
    (said,) = damaged("fp8", tensors=lambda tensors: tensors.pop("model.layers.0.self_attn.k_proj.input_scale"))
    assert "some have an input_scale, some have none" in said


def test_fp8_without_any_input_scale_is_quantized_as_it_runs(damaged: Callable[..., list[str]]) -> None:
    def drop(tensors: Tensors) -> None:
        for name in [name for name in tensors if name.endswith("input_scale")]:
            del tensors[name]

    assert damaged("fp8", tensors=drop) == []


@pytest.mark.parametrize(
    ("weights", "config", "keys", "complaint"),
    [
        ("int4_awq", {"quant_algo": "W4A8_AWQ"}, {}, "says quant_algo W4A8_AWQ, the recipe asks for int4_awq"),
        ("int4_awq", {"quant_algo": "W4A17"}, {}, "quant_algo W4A17 is none of TensorRT-LLM 1.2.1's"),
        ("int4_awq", {"group_size": None}, {}, "says group_size None, planned are groups of 128"),
        ("fp8", {}, {"kv_cache": "bf16"}, "says kv_cache_quant_algo FP8, the recipe's kv_cache is bf16"),
        ("fp8", {"kv_cache_quant_algo": "NVFP4"}, {}, "says kv_cache_quant_algo NVFP4, the recipe's kv_cache is fp8"),
        ("fp8", {"quant_algo": "MIXED_PRECISION"}, {"weights": "as_is"}, "MIXED_PRECISION needs quantized_layers"),
    ],
)
def test_a_config_that_says_something_else_is_named(
    damaged: Callable[..., list[str]], weights: str, config: dict[str, Any], keys: dict[str, Any], complaint: str
) -> None:
    said = damaged(weights, config=config, **keys)
    assert any(complaint in line for line in said), said


def written(folder: Path, tensors: Tensors, **quantization: Any) -> Path:
    """A checkpoint of these tensors alone."""
    save_file(tensors, folder / "model.safetensors")
    (folder / "hf_quant_config.json").write_text(json.dumps({"quantization": quantization}))
    return folder


def modelopt_expert(name: str, outputs: int = 256, inputs: int = 256) -> Tensors:
    """One linear of a W4A8 expert as ModelOpt packs it."""
    return {
        f"{name}.weight": torch.zeros(outputs // 2, inputs, dtype=torch.uint8),
        f"{name}.weight_scale": torch.ones(outputs, inputs // 128),
        f"{name}.weight_scale_2": torch.tensor(1.0),
        f"{name}.input_scale": torch.tensor(1.0),
        f"{name}.pre_quant_scale": torch.ones(inputs, dtype=torch.bfloat16),
    }


EXPERT = "model.layers.1.mlp.experts.0"
LINEARS = ("gate_proj", "up_proj", "down_proj")


def modelopt_experts() -> Tensors:
    return {key: tensor for own in LINEARS for key, tensor in modelopt_expert(f"{EXPERT}.{own}").items()}


W4A8 = {"quant_algo": "W4A8_AWQ", "group_size": 128, "kv_cache_quant_algo": "FP8"}


def test_experts_in_modelopts_form_are_read_by_qwen(tmp_path: Path) -> None:
    assert check_hf_checkpoint(written(tmp_path, modelopt_experts(), **W4A8), llm_plan("qwen3-30b-a3b")) == []


def test_scales_of_what_is_loaded_as_one_must_be_equal(tmp_path: Path) -> None:
    tensors = modelopt_experts() | {f"{EXPERT}.up_proj.input_scale": torch.tensor(2.0)}
    (said,) = check_hf_checkpoint(written(tmp_path, tensors, **W4A8), llm_plan("qwen3-30b-a3b"))
    assert said == f"gate_proj, up_proj of {EXPERT} differ in input_scale"


def test_experts_in_modelopts_form_are_not_read_by_deepseeks_class(tmp_path: Path) -> None:
    said = check_hf_checkpoint(written(tmp_path, modelopt_experts(), **W4A8), llm_plan("kimi-k2.6-decode-tp8"))
    assert len(said) == 3
    assert all(
        "KimiK25ForConditionalGeneration reads INT4 experts in the form of TensorRT-LLM's own script" in line for line in said
    )


def scripts_experts() -> Tensors:
    """Experts as upstream's script writes them: weights keep their names, scales of inputs have its own."""
    tensors = {}
    for own, scale in zip(LINEARS, ("w1", "w3", "w2"), strict=True):
        tensors[f"{EXPERT}.{own}.weight"] = torch.zeros(256, 128, dtype=torch.int8)
        tensors[f"{EXPERT}.{own}.weight_scale_inv"] = torch.ones(256, 2)
        tensors[f"{EXPERT}.{scale}.input_scale"] = torch.ones(1)
    return tensors


def test_experts_in_the_scripts_form_are_read_by_deepseeks_class(tmp_path: Path) -> None:
    plan = llm_plan("kimi-k2.6-decode-tp8")
    assert check_hf_checkpoint(written(tmp_path, scripts_experts(), **W4A8), plan) == []
    renamed = {
        key.replace("w1.", "gate_proj.").replace("w3.", "up_proj.").replace("w2.", "down_proj."): tensor
        for key, tensor in scripts_experts().items()
    }
    assert check_hf_checkpoint(written(tmp_path, renamed, **W4A8), plan) == []


@pytest.mark.parametrize(
    ("scale", "complaint"),
    [
        (None, "w2.input_scale is missing; KimiK25ForConditionalGeneration reads INT4 experts in the form"),
        (torch.ones(256), "w2.input_scale is F32 of the shape [256], not one number"),
        (torch.ones(1, dtype=torch.int8), "w2.input_scale is I8 of the shape [1], not one number"),
    ],
)
def test_experts_in_the_scripts_form_need_the_scale_of_their_inputs(
    scale: torch.Tensor | None, complaint: str, tmp_path: Path
) -> None:
    tensors = scripts_experts() | {f"{EXPERT}.w2.input_scale": scale}
    held = {key: tensor for key, tensor in tensors.items() if tensor is not None}
    (said,) = check_hf_checkpoint(written(tmp_path, held, **W4A8), llm_plan("kimi-k2.6-decode-tp8"))
    assert said.startswith(f"{EXPERT}.{complaint}")


def test_layers_for_multi_token_prediction_are_not_looked_at(tmp_path: Path) -> None:
    tensors = {"model.layers.48.mlp.up_proj.weight": torch.ones(2, 2), "model.norm.weight": torch.ones(2)}
    assert check_hf_checkpoint(written(tmp_path, tensors, **W4A8), llm_plan("qwen3-30b-a3b")) == []


def test_fp8_for_pytorch_has_one_scale_for_what_is_loaded_as_one(checkpoint_of) -> None:
    """Verified as a build verifies it; on the torch target each linear keeps a scale of its own."""
    made = checkpoint_of("qwen2", target="trtllm-pytorch", weights="fp8", page_tokens=32)
    assert check_hf_checkpoint(made.folder, made.plan) == []
    assert rounded_anew(made.folder, made.plan) is None
