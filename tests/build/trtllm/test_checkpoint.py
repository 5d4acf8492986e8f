"""From a verified checkpoint to TensorRT-LLM's, for every family and several ranks, and read back bit for bit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from verified_checkpoints import VerifiedCheckpoint

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.planner.plan import Plan, make_plan
from roundhouse.build.trtllm.checkpoint import write_trtllm_checkpoint
from roundhouse.build.trtllm.checkpoint_check import check_trtllm_checkpoint
from roundhouse.build.trtllm.linears import padded_sizes
from roundhouse.build.trtllm.ranks import ranks
from roundhouse.build.trtllm.upstream import check_fields, upstream
from roundhouse.errors import BuildError, VerifyError

CheckpointMaker = Callable[..., VerifiedCheckpoint]
CONFIG = "tensorrt_llm.models.modeling_utils.PretrainedConfig"
SPREADS = [(1, 1), (2, 1), (1, 2), (4, 2)]
"""Ranks of a layer, and stages. The models have 8 heads, 2 key/value heads, which 4 ranks repeat, and 3 layers."""

SHAPE = shape_from_config(
    {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 4,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "vocab_size": 1000,
        "max_position_embeddings": 512,
    },
    stored_dtype="bfloat16",
)
INT4: dict[str, object] = {}
FP8: dict[str, object] = {"weights": "fp8"}
BF16: dict[str, object] = {"weights": "bf16", "kv_cache": "bf16"}
MADE = [("llama", INT4), ("qwen2", INT4), ("qwen3", INT4), ("mistral", INT4), ("qwen3", FP8), ("llama", FP8), ("qwen2", BF16)]


def converted(verified: VerifiedCheckpoint, folder: Path, tensor: int = 1, pipeline: int = 1) -> Plan:
    """The plan of the same checkpoint for other ranks, after converting it for them."""
    recipe = verified.plan.recipe.model_copy(update={"tensor_parallel": tensor, "pipeline_parallel": pipeline})
    plan = make_plan(recipe, verified.model.shape, verified.model.inventory, verified.plan.hardware)
    assert plan.legal, plan.problems
    write_trtllm_checkpoint(verified.folder, folder, plan)
    return plan


@pytest.mark.parametrize(("tensor", "pipeline"), SPREADS)
@pytest.mark.parametrize(("family", "keys"), MADE, ids=str)
def test_every_rank_holds_what_was_verified(
    checkpoint_of: CheckpointMaker, tmp_path: Path, family: str, keys: dict[str, object], tensor: int, pipeline: int
) -> None:
    verified = checkpoint_of(family, **keys)
    plan = converted(verified, tmp_path / "made", tensor, pipeline)
    files = sorted(file.name for file in (tmp_path / "made").iterdir())
    assert files == ["config.json", *(f"rank{rank}.safetensors" for rank in range(tensor * pipeline))]
    written = sum(len(tensors_of(tmp_path / "made" / file)) for file in files[1:])
    steps: list[tuple[int, int]] = []
    assert check_trtllm_checkpoint(verified.folder, tmp_path / "made", plan, lambda *step: steps.append(step)) == written
    assert steps == [(rank + 1, tensor * pipeline) for rank in range(tensor * pipeline)]
    config = json.loads((tmp_path / "made" / "config.json").read_text())
    assert check_fields(CONFIG, config) == []
    assert set(config["quantization"]) <= set(upstream().quant.config["quantization"])
    assert set(upstream().quant.config["required"]) <= set(config)
    assert config["mapping"] == {"world_size": tensor * pipeline, "tp_size": tensor, "pp_size": pipeline}


@pytest.mark.parametrize(("family", "keys"), [("llama", INT4), ("llama", FP8), ("qwen2", BF16)], ids=["int4", "fp8", "bf16"])
def test_layouts_are_those_of_the_record(
    checkpoint_of: CheckpointMaker, tmp_path: Path, family: str, keys: dict[str, object]
) -> None:
    verified = checkpoint_of(family, **keys)
    plan = converted(verified, tmp_path / "made", tensor=2)
    config = json.loads((tmp_path / "made" / "config.json").read_text())
    layout = upstream().quant.algorithms[config["quantization"]["quant_algo"] or "none"]
    tensors = tensors_of(tmp_path / "made" / "rank1.safetensors")
    shape = plan.shape
    for linear, outputs, inputs in (
        ("attention.qkv", (shape.heads + 2 * shape.kv_heads) * shape.head_dim // 2, shape.hidden),
        ("attention.dense", shape.hidden, shape.heads * shape.head_dim // 2),
        ("mlp.fc", shape.intermediate // 2, shape.hidden),
        ("mlp.proj", shape.hidden, shape.intermediate // 2),
    ):
        sizes = {"out": outputs, "in": inputs, "out/2": outputs // 2, "in/group_size": inputs // (plan.group_size or inputs)}
        name = f"transformer.layers.1.{linear}"
        for part, spec in layout.items():
            tensor = tensors[f"{name}.{part}"]
            assert tuple(tensor.shape) == tuple(sizes.get(str(size), size) for size in spec.dims), f"{linear}.{part}"
            # Group scales are of any type: upstream casts them to the model's when it loads them.
            dtype = "float32" if part == "weights_scaling_factor" else "bfloat16" if spec.dtype == "model" else spec.dtype
            assert str(tensor.dtype) == f"torch.{dtype}", f"{linear}.{part}"
        extra = {key.removeprefix(f"{name}.") for key in tensors if key.startswith(f"{name}.")} - set(layout)
        assert extra <= {"bias"}


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_fp8_gate_and_up_share_their_scales_because_the_builder_fuses_them(
    checkpoint_of: CheckpointMaker, tmp_path: Path, family: str
) -> None:
    plan = converted(checkpoint_of(family, **FP8), tmp_path / "made")
    tensors = tensors_of(tmp_path / "made" / "rank0.safetensors")
    for layer in range(plan.shape.layers):
        for scale in ("weights_scaling_factor", "activation_scaling_factor"):
            fc, gate = (tensors[f"transformer.layers.{layer}.mlp.{name}.{scale}"] for name in ("fc", "gate"))
            assert bool(fc == gate)


def test_the_first_stage_embeds_and_the_last_answers(checkpoint_of: CheckpointMaker, tmp_path: Path) -> None:
    converted(checkpoint_of("llama"), tmp_path / "made", pipeline=2)
    first, last = (set(tensors_of(tmp_path / "made" / f"rank{rank}.safetensors")) for rank in range(2))
    assert "transformer.vocab_embedding.weight" in first - last
    assert {"lm_head.weight", "transformer.ln_f.weight"} <= last - first
    layers = [{int(name.split(".")[2]) for name in names if ".layers." in name} for names in (first, last)]
    assert layers == [{0, 1}, {0}]  # counted from 0 on every rank


def test_a_head_that_does_not_divide_is_padded_with_zeros(checkpoint_of: CheckpointMaker, tmp_path: Path) -> None:
    plan = converted(checkpoint_of("mistral"), tmp_path / "made", tensor=4)
    heads = [tensors_of(tmp_path / "made" / f"rank{rank}.safetensors")["lm_head.weight"] for rank in range(4)]
    assert [len(head) for head in heads] == [129] * 4
    assert plan.shape.vocab == 514
    assert bool((heads[-1][-2:] == 0).all())
    assert bool((heads[-1][:-2] != 0).any(dim=1).all())


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("transformer.layers.1.attention.qkv.weight", "transformer.layers.1.attention.qkv: its weights are not those of"),
        ("transformer.layers.0.mlp.proj.weights_scaling_factor", "transformer.layers.0.mlp.proj: its weights"),
        ("transformer.layers.0.attention.dense.prequant_scaling_factor", "transformer.layers.0.attention.dense: its weights"),
        ("transformer.layers.0.post_layernorm.weight", "transformer.layers.0.post_layernorm.weight differs"),
        ("transformer.layers.1.attention.kv_cache_scaling_factor", "kv_cache_scaling_factor differs"),
        ("lm_head.weight", "lm_head.weight differs"),
    ],
)
def test_one_changed_number_is_found(checkpoint_of: CheckpointMaker, tmp_path: Path, name: str, what: str) -> None:
    verified = checkpoint_of("llama")
    plan = converted(verified, tmp_path / "made", tensor=2)
    tensors = tensors_of(tmp_path / "made" / "rank1.safetensors")
    flat = tensors[name].view(-1)
    flat[-1] = -flat[-1] if name.endswith("weight") and flat[-1] != 0 else flat[-1] + 1
    save(tensors, tmp_path / "made" / "rank1.safetensors")
    with pytest.raises(VerifyError, match="rank 1: ") as error:
        check_trtllm_checkpoint(verified.folder, tmp_path / "made", plan)
    assert what in error.value.message


def test_swapped_ranks_missing_and_foreign_tensors_are_found(checkpoint_of: CheckpointMaker, tmp_path: Path) -> None:
    verified = checkpoint_of("llama")
    plan = converted(verified, tmp_path / "made", tensor=2)
    files = [tmp_path / "made" / f"rank{rank}.safetensors" for rank in range(2)]
    tensors = [tensors_of(file) for file in files]
    save(tensors[0], files[1])
    with pytest.raises(VerifyError, match=r"rank 1: transformer\.layers\.0\.attention\.qkv"):
        check_trtllm_checkpoint(verified.folder, tmp_path / "made", plan)
    changed = dict(tensors[1])
    changed["transformer.layers.0.mlp.extra"] = changed.pop("transformer.layers.0.input_layernorm.weight")
    save(changed, files[1])
    with pytest.raises(VerifyError) as error:
        check_trtllm_checkpoint(verified.folder, tmp_path / "made", plan)
    assert "input_layernorm.weight is missing" in error.value.message
    assert "transformer.layers.0.mlp.extra belongs to nothing" in error.value.message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"quantization": {"quant_algo": "FP8"}}, "rank 0: config.json says quant_algo 'FP8', and its tensors 'W4A16_AWQ'"),
        ({"quantization": {"group_size": 128}}, "config.json says group_size 128, and its tensors 64"),
        ({"quantization": {"pre_quant_scale": False}}, "says pre_quant_scale False, and its tensors True"),
        ({"quantization": {"kv_cache_quant_algo": None}}, "says kv_cache_quant_algo None, and its tensors 'FP8'"),
        ({"attn_bias": True}, "says attn_bias True, and its tensors False"),
        ({"qk_layernorm": True}, "says qk_layernorm True, and its tensors False"),
        ({"vocab_size": 515}, "says vocab_size and hidden_size [515, 256], and its tensors [514, 256]"),
        ({"mapping": {"tp_size": 1}}, "'tp_size': 1, 'pp_size': 1}, and there are 2 ranks"),
        ({"mapping": {"tp_size": 1, "pp_size": 2}}, "config.json says 3 layers, and the stages have 6"),
    ],
    ids=str,
)
def test_a_config_that_says_otherwise_than_the_tensors_is_found(
    checkpoint_of: CheckpointMaker, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    verified = checkpoint_of("llama")
    plan = converted(verified, tmp_path / "made", tensor=2)
    file = tmp_path / "made" / "config.json"
    config = json.loads(file.read_text())
    for key, value in changes.items():
        config[key] = {**config[key], **value} if isinstance(value, dict) else value
    file.write_text(json.dumps(config))
    with pytest.raises(VerifyError) as error:
        check_trtllm_checkpoint(verified.folder, tmp_path / "made", plan)
    assert words in error.value.message


def test_a_tensor_without_a_place_is_refused(checkpoint_of: CheckpointMaker, tmp_path: Path) -> None:
    verified = checkpoint_of("qwen2", **BF16)
    shape = verified.plan.shape.model_copy(update={"layers": 2})
    with pytest.raises(BuildError, match=r"no place for model\.layers\.2\."):
        write_trtllm_checkpoint(verified.folder, tmp_path / "made", verified.plan.model_copy(update={"shape": shape}))


@given(st.sampled_from([1, 2, 4, 8, 16]), st.integers(1, 4), st.integers(4, 40))
def test_ranks_share_out_layers_and_heads(tensor: int, pipeline: int, layers: int) -> None:
    shape = SHAPE.model_copy(update={"layers": layers})
    everyone = ranks(shape, tensor=tensor, pipeline=pipeline)
    assert [rank.index for rank in everyone] == list(range(tensor * pipeline))
    held = [layer for rank in everyone if rank.tensor_rank == 0 for layer in rank.layers]
    assert held == list(range(layers))
    heads = [head for rank in everyone if rank.stage == 0 for head in rank.kv_heads(shape)]
    assert sorted(set(heads)) == list(range(shape.kv_heads))
    assert len(heads) == max(tensor, shape.kv_heads)
    assert heads == sorted(heads)


def test_sizes_that_upstream_would_round_up_are_told() -> None:
    assert padded_sizes(SHAPE, tensor=1, group=64) == []
    assert padded_sizes(SHAPE, tensor=2, group=32) == padded_sizes(SHAPE, tensor=2, group=64) == []
    assert padded_sizes(SHAPE, tensor=4, group=128) == []
    assert padded_sizes(SHAPE, tensor=16, group=128) == [
        "hidden size 1024 is no multiple of 2048",
        "attention's heads 1024 is no multiple of 2048",
        "queries, keys and values 3072 is no multiple of 2048",
    ]


def tensors_of(path: Path):
    from safetensors.torch import load_file

    return load_file(path)


def save(tensors, path: Path) -> None:
    from safetensors.torch import save_file

    save_file(tensors, path)
