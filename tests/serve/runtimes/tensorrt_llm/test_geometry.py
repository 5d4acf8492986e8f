"""What is read from an engine's config.json, and how layers and heads are shared among its ranks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engine_configs import engine_config, geometry
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from roundhouse.build.models.shape import ModelShape
from roundhouse.build.planner.kv_layout import layout_for
from roundhouse.build.trtllm.upstream import check_fields, upstream
from roundhouse.errors import EngineError
from roundhouse.serve.runtimes.tensorrt_llm.geometry import (
    BuildLimits,
    EngineGeometry,
    ModelPart,
    PluginChoices,
    RankMapping,
    read_geometry,
)
from roundhouse.serve.runtimes.tensorrt_llm.ranks import rank_parts


def keys(model: type[BaseModel]) -> dict[str, None]:
    return dict.fromkeys(model.model_fields)


def test_every_key_that_is_read_is_one_of_upstream_s() -> None:
    assert check_fields("tensorrt_llm.builder.BuildConfig", keys(BuildLimits)) == []
    assert check_fields("tensorrt_llm.plugin.plugin.PluginConfig", keys(PluginChoices)) == []
    assert check_fields("tensorrt_llm.mapping.Mapping", keys(RankMapping)) == []
    model = keys(ModelPart)
    assert check_fields("tensorrt_llm.models.modeling_utils.PretrainedConfig", model) == []
    written = upstream().quant.config
    assert set(model) <= set(written["written_by_modelopt"])
    assert set(engine_config()["pretrained_config"]["quantization"]) <= set(written["quantization"])


def model_shape(layers: int, kv_heads: int, head_dim: int) -> ModelShape:
    return ModelShape(
        architecture="LlamaForCausalLM",
        model_type="llama",
        hidden=8 * head_dim,
        intermediate=256,
        layers=layers,
        heads=8,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab=512,
        max_positions=4096,
        tied_embeddings=False,
        sliding_window=None,
        rope="default",
        dtype="bf16",
        dtype_from="config.json",
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"build": {"max_beam_width": 4}}, "build_config.max_beam_width"),
        ({"build": {"gather_context_logits": True}}, "build_config.gather_context_logits"),
        ({"build": {"max_draft_len": 3}}, "build_config.max_draft_len"),
        ({"plugins": {"remove_input_padding": False}}, "plugin_config.remove_input_padding"),
        ({"plugins": {"multiple_profiles": True}}, "plugin_config.multiple_profiles"),
        ({"model": {"quantization": {"kv_cache_quant_algo": "NVFP4"}}}, "quantization.kv_cache_quant_algo"),
        ({"model": {"mapping": {"tp_size": 1, "cp_size": 2}}}, "mapping.cp_size"),
        ({"model": {"mapping": {"pp_size": 2, "pp_partition": [2, 1]}}}, r"pp_partition \[2, 1\] does not share 2 layers by 2"),
    ],
)
def test_engines_that_steps_cannot_feed_are_refused_by_the_key(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(engine_config(**changes)))
    with pytest.raises(EngineError, match=says):
        read_geometry(path)


def test_a_missing_config_is_told_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"config\.json: No such file"):
        read_geometry(tmp_path / "config.json")


@pytest.mark.parametrize(("paged", "fmha"), [(True, True), (False, True), (True, False)])
def test_prompts_may_be_cut_where_attention_reads_pages(paged: bool, fmha: bool) -> None:
    plugins = {"use_paged_context_fmha": paged, "context_fmha": fmha}
    assert geometry(plugins=plugins).takes_chunks is (paged and fmha)


def test_dimensions_that_a_config_leaves_out_follow_from_others() -> None:
    config = engine_config()
    del config["pretrained_config"]["num_key_value_heads"], config["pretrained_config"]["head_size"]
    plain = EngineGeometry.model_validate(config)
    assert (plain.kv_heads, plain.head_dim) == (4, 32)


@given(
    layers=st.integers(1, 40),
    heads=st.sampled_from([1, 2, 8]),
    dim=st.sampled_from([64, 128]),
    page_tokens=st.sampled_from([16, 32, 64]),
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.integers(1, 4),
    fp8=st.booleans(),
)
def test_a_page_of_the_fullest_rank_is_the_plan_s(
    layers: int, heads: int, dim: int, page_tokens: int, tp: int, pp: int, fp8: bool
) -> None:
    """The planner's layout and the engine's config say the same of how many bytes a page takes."""
    pp = min(pp, layers)
    built = geometry(
        tp=tp,
        pp=pp,
        model={
            "dtype": "bfloat16",
            "num_hidden_layers": layers,
            "num_key_value_heads": heads,
            "num_attention_heads": 8,
            "head_size": dim,
            "quantization": {"kv_cache_quant_algo": "FP8" if fp8 else None},
        },
        plugins={"tokens_per_block": page_tokens},
    )
    for part in rank_parts(built):
        mine = max(1, heads // tp)
        planned = layout_for(model_shape(layers, heads, dim), "fp8" if fp8 else "bf16", kv_heads=mine, layers=part.layers)
        assert planned.groups[0].page_bytes(page_tokens) == len(part.layers) * 2 * built.block_bytes


@given(layers=st.integers(1, 100), tp=st.integers(1, 8), pp=st.integers(1, 8))
def test_ranks_share_all_layers_in_order_and_the_first_get_one_more(layers: int, tp: int, pp: int) -> None:
    pp = min(pp, layers)
    parts = rank_parts(geometry(tp=tp, pp=pp, model={"num_hidden_layers": layers}))
    assert [part.rank for part in parts] == list(range(tp * pp))
    assert [part.rank for part in parts] == [part.pp_rank * tp + part.tp_rank for part in parts]
    stages = [part.layers for part in parts if part.tp_rank == 0]
    assert [layer for stage in stages for layer in stage] == list(range(layers))
    sizes = [len(stage) for stage in stages]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1
    assert [part.is_first for part in parts] == [part.pp_rank == 0 for part in parts]
    assert [part.is_last for part in parts] == [part.pp_rank == pp - 1 for part in parts]


def test_a_partition_of_the_config_s_own_is_followed() -> None:
    mapping = {"tp_size": 1, "pp_size": 2, "pp_partition": [5, 3]}
    parts = rank_parts(geometry(model={"num_hidden_layers": 8, "mapping": mapping}))
    assert [part.layers for part in parts] == [range(5), range(5, 8)]
