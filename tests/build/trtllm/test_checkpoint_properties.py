"""Any dense model, however its heads, layers and words divide among ranks: what each rank gets is what belongs to it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from verified_checkpoints import plan_for

from roundhouse.build.models.sources import Model
from roundhouse.build.planner.plan import Plan
from roundhouse.build.trtllm.checkpoint import write_trtllm_checkpoint
from roundhouse.build.trtllm.checkpoint_check import check_trtllm_checkpoint

GROUP = 8


@st.composite
def spreads(draw: st.DrawFn) -> dict[str, int]:
    """Sizes of a model that divide among ranks, with fewer or more ranks than key/value heads."""
    tensor = draw(st.sampled_from([1, 2, 3, 4, 8]))
    kv_heads = draw(st.sampled_from([n for n in range(1, 9) if n % tensor == 0 or tensor % n == 0]))
    shared_by = draw(st.sampled_from([n for n in (1, 2, 3, 4, 8) if kv_heads * n % tensor == 0]))
    layers = draw(st.integers(1, 5))
    return {
        "tensor": tensor,
        "pipeline": draw(st.integers(1, layers)),
        "layers": layers,
        "heads": kv_heads * shared_by,
        "kv_heads": kv_heads,
        "head_dim": GROUP,
        "hidden": 2 * GROUP,
        "intermediate": GROUP * tensor * draw(st.integers(1, 2)),
        "vocab": draw(st.integers(5, 40)),
    }


def linear(name: str, outputs: int, inputs: int, *, biased: bool, scaled: bool) -> dict[str, torch.Tensor]:
    """A linear as ModelOpt exports INT4 AWQ."""
    made = {
        f"{name}.weight": torch.randint(0, 256, (outputs // 2, inputs), dtype=torch.uint8),
        f"{name}.weight_scale": torch.rand(outputs, inputs // GROUP) + 0.1,
    }
    if biased:
        made[f"{name}.bias"] = torch.randn(outputs, dtype=torch.bfloat16)
    if scaled:
        made[f"{name}.pre_quant_scale"] = torch.rand(inputs, dtype=torch.bfloat16) + 0.5
    return made


def checkpoint_like(sizes: dict[str, int], *, tied: bool) -> dict[str, torch.Tensor]:
    hidden, heads, kv = sizes["hidden"], sizes["heads"] * sizes["head_dim"], sizes["kv_heads"] * sizes["head_dim"]
    words = sizes["vocab"], hidden
    made = {"model.embed_tokens.weight": torch.randn(words).bfloat16(), "model.norm.weight": torch.randn(hidden).bfloat16()}
    if not tied:
        made["lm_head.weight"] = torch.randn(words).bfloat16()
    for index in range(sizes["layers"]):
        layer = f"model.layers.{index}"
        for part, outputs in (("q", heads), ("k", kv), ("v", kv)):
            made |= linear(f"{layer}.self_attn.{part}_proj", outputs, hidden, biased=True, scaled=False)
        made |= linear(f"{layer}.self_attn.o_proj", hidden, heads, biased=False, scaled=True)
        for part in ("gate", "up"):
            made |= linear(f"{layer}.mlp.{part}_proj", sizes["intermediate"], hidden, biased=False, scaled=False)
        made |= linear(f"{layer}.mlp.down_proj", hidden, sizes["intermediate"], biased=False, scaled=True)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            made[f"{layer}.{norm}.weight"] = torch.randn(hidden).bfloat16()
        made[f"{layer}.self_attn.k_proj.k_scale"] = torch.rand(())
        made[f"{layer}.self_attn.v_proj.v_scale"] = torch.rand(())
    return made


def plan_like(plan: Plan, sizes: dict[str, int]) -> Plan:
    recipe = {
        "tensor_parallel": sizes["tensor"],
        "pipeline_parallel": sizes["pipeline"],
        "weights": "int4_awq",
        "kv_cache": "fp8",
    }
    shape = {key: sizes[key] for key in ("layers", "heads", "kv_heads", "head_dim", "hidden", "intermediate", "vocab")}
    changed: dict[str, Any] = {
        "recipe": plan.recipe.model_copy(update=recipe),
        "shape": plan.shape.model_copy(update=shape),
        "group_size": GROUP,
    }
    return plan.model_copy(update=changed)


@settings(max_examples=30)
@given(sizes=spreads(), tied=st.booleans(), seed=st.integers(0, 2**16))
def test_what_is_written_for_any_spread_reads_back_exactly(wide_model, sizes: dict[str, int], tied: bool, seed: int) -> None:
    model: Model = wide_model("qwen2")
    torch.manual_seed(seed)
    tensors = checkpoint_like(sizes, tied=tied)
    plan = plan_like(plan_for(model), sizes)
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "verified", Path(folder) / "made"
        source.mkdir()
        save_file(tensors, source / "model.safetensors")
        (source / "config.json").write_text((model.folder / "config.json").read_text())
        write_trtllm_checkpoint(source, made, plan)
        compared = check_trtllm_checkpoint(source, made, plan)
        files = [load_file(made / f"rank{rank}.safetensors") for rank in range(sizes["tensor"] * sizes["pipeline"])]
    assert compared == sum(len(own) for own in files)
    rows = [own["transformer.layers.0.attention.qkv.weights_scaling_factor"].shape[0] for own in files]
    repeated = max(sizes["kv_heads"], sizes["tensor"])
    assert rows == [(sizes["heads"] + 2 * repeated) * sizes["head_dim"] // sizes["tensor"]] * len(files)
