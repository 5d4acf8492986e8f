"""ModelOpt's own export for TensorRT-LLM beside our conversion, of one calibrated model: the same names and layouts, the same
weights. It reads the model in memory, and leaves in the inputs' scales what the other export folds into norms.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from verified_checkpoints import plan_for

from roundhouse.build.models.sources import Model
from roundhouse.build.quantize import calibrate, load_base, load_tokenizer, write_checkpoint
from roundhouse.build.quiet import quiet_libraries
from roundhouse.build.texts import calibration_text
from roundhouse.build.trtllm.checkpoint import write_trtllm_checkpoint
from roundhouse.build.weights import unpack_int4

THEIRS_ONLY = {"k_cache_scaling_factor", "v_cache_scaling_factor"}
"""Upstream takes the larger of the two when it loads them; we write that."""
CHOICES = {
    "logits_dtype": ("float32", "float16"),
    "use_parallel_embedding": (False, True),
}
"""Where we have another value than ModelOpt, and which."""


@pytest.mark.parametrize("weights", ["int4_awq", "fp8"])
@pytest.mark.parametrize(
    ("family", "decoder"), [("llama", "llama"), ("qwen2", "qwen"), ("qwen3", "qwen"), ("mistral", "llama")]
)
def test_modelopt_writes_the_same(wide_model, tmp_path: Path, family: str, decoder: str, weights: str) -> None:
    model: Model = wide_model(family)
    plan = plan_for(model, weights=weights, group_size=64 if weights == "int4_awq" else "auto")
    base, tokenizer = load_base(model.folder, "bfloat16"), load_tokenizer(model.folder)
    calibrate(base, tokenizer, calibration_text(None), plan.recipe, plan.group_size, lambda *_: None)
    export(base, decoder, tmp_path / "theirs")
    write_checkpoint(base, tokenizer, plan.recipe, tmp_path / "unified")
    write_trtllm_checkpoint(tmp_path / "unified", tmp_path / "ours", plan)

    ours, theirs = (load_file(tmp_path / name / "rank0.safetensors") for name in ("ours", "theirs"))
    theirs = {name: tensor for name, tensor in theirs.items() if name.rpartition(".")[2] not in THEIRS_ONLY}
    tied = {"lm_head.weight"} if plan.shape.tied_embeddings else set()
    assert {*theirs, *tied} == set(ours)
    for name, tensor in theirs.items():
        if name in ("lm_head.weight", "transformer.vocab_embedding.weight"):
            tensor = tensor[: plan.shape.vocab]  # ModelOpt pads to 64 words
        assert (ours[name].dtype, ours[name].shape) == (tensor.dtype, tensor.shape), name
        if name.rpartition(".")[0].rpartition(".")[2] in ("qkv", "dense", "fc", "gate", "proj"):
            continue  # below, together with what scales their inputs
        # Of KV scales ModelOpt writes none below 1 here, and the calibrated ones into the other checkpoint.
        if "layernorm" not in name and not name.endswith("kv_cache_scaling_factor"):
            assert torch.equal(ours[name], tensor), name
    for layer in range(plan.shape.layers):
        for linear, norm in FED_BY.items():
            name = f"transformer.layers.{layer}.{linear}"
            before = f"transformer.layers.{layer}.{norm}.weight"
            # Gate and up share a scale in the other export, because one norm feeds both; here each has its own.
            resmoothed = weights == "int4_awq" and linear in ("mlp.fc", "mlp.gate")
            close(meaning(ours, name, before), meaning(theirs, name, before), name, resmoothed=resmoothed)
            if f"{name}.bias" in theirs:
                assert torch.equal(ours[f"{name}.bias"], theirs[f"{name}.bias"])

    mine, modelopt = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("ours", "theirs"))
    differing = {key: (mine[key], modelopt[key]) for key in mine.keys() & modelopt.keys() if mine[key] != modelopt[key]}
    padded = {"vocab_size": (514, 576)} if weights == "int4_awq" else {}
    assert differing == CHOICES | padded


FED_BY = {
    "attention.qkv": "input_layernorm",
    "attention.dense": None,
    "mlp.fc": "post_layernorm",
    "mlp.gate": "post_layernorm",
    "mlp.proj": None,
}


def export(model: torch.nn.Module, decoder: str, folder: Path) -> None:
    from modelopt.torch.export import export_tensorrt_llm_checkpoint

    with quiet_libraries(), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        export_tensorrt_llm_checkpoint(model, decoder, dtype=torch.bfloat16, export_dir=folder, inference_tensor_parallel=1)


def meaning(tensors: dict[str, torch.Tensor], name: str, norm: str) -> torch.Tensor:
    """A linear's matrix with the norm before it, however the two share the scale of their inputs."""
    weight, scale = tensors[f"{name}.weight"], tensors[f"{name}.weights_scaling_factor"].float()
    if weight.dtype == torch.int8:
        values = unpack_int4(weight.view(torch.uint8)).float()
        matrix = values * scale.repeat_interleave(values.shape[1] // scale.shape[1], dim=1)
        matrix = matrix * tensors[f"{name}.prequant_scaling_factor"].float()
    else:
        matrix = weight.float() * scale
    return matrix * tensors[norm].float() if norm in tensors else matrix


def close(one: torch.Tensor, other: torch.Tensor, name: str, *, resmoothed: bool) -> None:
    """Alike to a rounding of the norm, or of the input's scale, to bf16; a few weights fall on the format's next value.

    ``resmoothed``: quantized with another scale of the inputs, so that every weight may be a step of the format away.
    """
    difference = (one - other).abs()
    off = float((difference > 0.012 * other.abs() + 1e-9).float().mean())
    assert off <= 0.1 or resmoothed, f"{name}: {off:.1%} differ"
    assert float(difference.amax()) <= 0.25 * float(other.abs().amax()), name
