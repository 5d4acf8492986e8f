"""Verification notices every kind of difference between what was asked for and what was written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from roundhouse.build.engine import Engine
from roundhouse.build.models.sources import read_model
from roundhouse.build.verify import Verified, verify_checkpoint
from roundhouse.errors import VerifyError

Tensors = dict[str, torch.Tensor]
_Q = "model.layers.1.self_attn.q_proj"
_DOWN = "model.layers.0.mlp.down_proj"


Change = Callable[[Tensors], object]
Verify = Callable[[Change], Verified]


def verifier(engine: Engine, folder: Path) -> Verify:
    """Verify a copy of an engine's checkpoint after a change to its tensors."""

    def run(change: Change) -> Verified:
        shutil.copytree(engine.checkpoint, folder)
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors")
        manifest = engine.manifest
        base = read_model(Path(manifest.recipe.model))
        return verify_checkpoint(base, folder, manifest.recipe, manifest.plan, lambda done, total: None)

    return run


@pytest.fixture
def verify_changed(tiny_engine: Engine, tmp_path: Path) -> Verify:
    """INT4 AWQ weights, FP8 KV."""
    return verifier(tiny_engine, tmp_path / "checkpoint")


def test_an_unchanged_checkpoint_passes(verify_changed, tiny_engine: Engine) -> None:
    assert verify_changed(lambda tensors: None).modules == tiny_engine.manifest.modules


def _unquantize(tensors: Tensors) -> None:
    columns = tensors[f"{_Q}.weight"].shape[1]
    rows = tensors[f"{_Q}.weight"].shape[0] * 2
    tensors[f"{_Q}.weight"] = torch.zeros(rows, columns, dtype=torch.bfloat16)
    del tensors[f"{_Q}.weight_scale"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (_unquantize, f"{_Q}.weight was to be quantized"),
        (lambda t: t.pop("model.norm.weight"), "model.norm.weight is missing"),
        (lambda t: t["model.norm.weight"].mul_(1.01), "model.norm.weight was not to be quantized"),
        (lambda t: t["model.embed_tokens.weight"][3].add_(1), "model.embed_tokens.weight was not to be quantized"),
        (lambda t: t["model.layers.1.input_layernorm.weight"].mul_(1.1), "scales are larger"),
        (lambda t: t["model.layers.1.input_layernorm.weight"].mul_(0.9), "further from the base"),
        (lambda t: t[f"{_Q}.weight"].bitwise_xor_(0x11), f"{_Q}: .* further from the base"),
        (lambda t: t[f"{_Q}.weight_scale"].mul_(1.2), f"{_Q}: scales are larger"),
        (lambda t: t[f"{_Q}.weight_scale"].mul_(0.8), f"{_Q}: .* further from the base"),
        (lambda t: t[f"{_DOWN}.pre_quant_scale"].mul_(0.8), f"{_DOWN}: .* further from the base"),
        (lambda t: t.update(extra=torch.zeros(1)), "extra is not in the base"),
        (lambda t: t["model.layers.0.self_attn.k_proj.k_scale"].zero_(), "k_proj.k_scale is 0.0"),
        (lambda t: t["model.layers.0.self_attn.v_proj.v_scale"].neg_(), "must be a positive number"),
        (lambda t: t.pop("model.layers.0.self_attn.k_proj.k_scale"), r"k scales are missing for layers \[0\]"),
        (lambda t: [t.pop(name) for name in list(t) if name.endswith(("k_scale", "v_scale"))], "KV scales are absent"),
        (
            lambda t: t.update({"model.layers.0.self_attn.mystery_scale": torch.ones(())}),
            "mystery_scale is a scale",
        ),
        (lambda t: t.update({"model.layers.0.mlp.scaling_factor": torch.ones(())}), "scaling_factor is a scale"),
        (lambda t: t["model.layers.1.input_layernorm.weight"].fill_(torch.nan), "input_layernorm.weight was not to be"),
        (lambda t: t["model.layers.1.input_layernorm.weight"].fill_(torch.inf), "input_layernorm.weight was not to be"),
        (lambda t: t["model.layers.1.input_layernorm.weight"].neg_(), "input_layernorm.weight was not to be"),
        (lambda t: t[f"{_Q}.weight_scale"].fill_(torch.nan), f"{_Q}: scales are larger"),
        (lambda t: [t[f"{_Q}.weight"].zero_(), t[f"{_Q}.weight_scale"].mul_(14)], f"{_Q}: scales are larger"),
        (lambda t: [t[f"{_Q}.weight"].zero_(), t[f"{_Q}.weight_scale"].fill_(1e3)], f"{_Q}: scales are larger"),
        (lambda t: t[f"{_Q}.weight"].zero_(), f"{_Q}: .* further from the base"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_changed_checkpoint_is_refused_by_name(verify_changed, change: Callable[[Tensors], object], named: str) -> None:
    with pytest.raises(VerifyError, match=named):
        verify_changed(change)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda t: [t[f"{_Q}.weight"].zero_(), t[f"{_Q}.weight_scale"].fill_(1e6)], f"{_Q}: scales are larger"),
        (lambda t: t[f"{_Q}.weight_scale"].fill_(torch.nan), f"{_Q}: scales are larger"),
        (lambda t: t[f"{_Q}.weight"].view(torch.uint8).bitwise_xor_(0x10), f"{_Q}: .* further from the base"),
        (lambda t: t["model.layers.1.input_layernorm.weight"].mul_(2), "input_layernorm.weight was not to be"),
    ],
)
def test_a_changed_fp8_checkpoint_is_refused_by_name(build_engine, tmp_path: Path, change: Change, named: str) -> None:
    with pytest.raises(VerifyError, match=named):
        verifier(build_engine("qwen2", weights="fp8"), tmp_path / "checkpoint")(change)


@pytest.mark.parametrize("factor", [10, 0])
def test_no_norm_may_change_where_nothing_compensates(build_engine, tmp_path: Path, factor: float) -> None:
    engine = build_engine("qwen2", weights="bf16", kv_cache="fp8")
    with pytest.raises(VerifyError, match=r"input_layernorm\.weight was not to be quantized"):
        verifier(engine, tmp_path / "checkpoint")(lambda t: t["model.layers.1.input_layernorm.weight"].mul_(factor))


def test_experts_that_were_left_unquantized_are_noticed(tmp_path: Path, tiny_engine: Engine) -> None:
    """A fused expert tensor is no matrix, so nothing quantizes it: its bytes must not pass as done."""
    from roundhouse.build.planner.scheme import is_quantized_name

    manifest = tiny_engine.manifest
    base = read_model(Path(manifest.recipe.model))
    experts = torch.zeros(4, 512, 256, dtype=torch.bfloat16)
    folder = tmp_path / "base"
    shutil.copytree(base.folder, folder)
    save_file(
        load_file(base.folder / "model.safetensors") | {"model.layers.0.mlp.experts": experts}, folder / "model.safetensors"
    )
    changed = read_model(folder)
    assert not is_quantized_name("model.layers.0.mlp.experts", (4, 512, 256), manifest.recipe)
    with pytest.raises(VerifyError, match=r"model\.layers\.0\.mlp\.experts is missing"):
        verify_checkpoint(changed, tiny_engine.checkpoint, manifest.recipe, manifest.plan, lambda done, total: None)
