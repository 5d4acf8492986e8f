"""What TensorRT-LLM is given for a table of recipes: golden files, and every key of them checked against the record."""

from __future__ import annotations

import json

import pytest
from trtllm_engine_recipes import ENGINE_RECIPES, GOLDEN, engine_plan, golden_engine_text, published_config

from roundhouse.build.trtllm.checkpoint_config import checkpoint_config
from roundhouse.build.trtllm.engine_config import build_config, cuts_prompts
from roundhouse.build.trtllm.upstream import check_fields, parameters_of, upstream
from roundhouse.errors import BuildError

CHECKPOINT = "tensorrt_llm.models.modeling_utils.PretrainedConfig"
FAMILIES = {"llama": "tensorrt_llm.models.llama.config.LLaMAConfig", "qwen": "tensorrt_llm.models.qwen.config.QWenConfig"}
QWEN_READS = {"qwen_type", "seq_length"}
"""Keys that upstream's Qwen reads of its config and that no class names (a note of the record)."""
QUANTIZATION = "tensorrt_llm.models.modeling_utils.QuantConfig"
BUILD = "tensorrt_llm.builder.BuildConfig"


@pytest.mark.parametrize("name", ENGINE_RECIPES)
def test_what_is_given_is_what_it_was(name: str) -> None:
    """`PYTHONPATH=src python tests/build/support/trtllm_engine_recipes.py` writes the files anew."""
    assert golden_engine_text(name) == (GOLDEN / f"engine-{name}.json").read_text()


@pytest.mark.parametrize("name", ENGINE_RECIPES)
def test_every_key_is_upstreams(name: str) -> None:
    assert engine_plan(name).legal, engine_plan(name).problems
    given = json.loads(golden_engine_text(name))
    assert check_fields(BUILD, given["build"]) == []
    assert check_fields(CHECKPOINT, given["checkpoint"]) == []
    assert check_fields(QUANTIZATION, given["checkpoint"]["quantization"]) == []
    assert set(given["checkpoint"]["mapping"]) <= set(upstream().quant.config["mapping"])
    algorithm = given["checkpoint"]["quantization"]["quant_algo"]
    assert algorithm is None or algorithm in upstream().quant.algorithms


@pytest.mark.parametrize("name", ENGINE_RECIPES)
def test_every_key_of_a_checkpoint_is_read_by_its_family(name: str) -> None:
    config = json.loads(golden_engine_text(name))["checkpoint"]
    family = FAMILIES["qwen" if "qwen_type" in config else "llama"]
    known = {each.name for record in (CHECKPOINT, family) for each in parameters_of(record)}
    assert set(config) - known == (QWEN_READS if "qwen_type" in config else set())


@pytest.mark.parametrize(("weights", "kv_cache"), [("fp8", "bf16"), ("fp8", "fp8"), ("bf16", "bf16"), ("int4_awq", "fp8")])
def test_attention_in_fp8_needs_fp8_weights_and_an_fp8_cache(weights: str, kv_cache: str) -> None:
    plan = engine_plan("qwen3-8b")
    recipe = plan.recipe.model_copy(update={"weights": weights, "kv_cache": kv_cache})
    plugins = build_config(plan.model_copy(update={"recipe": recipe}))["plugin_config"]
    assert plugins["use_fp8_context_fmha"] == (weights == kv_cache == "fp8")
    assert plugins["use_paged_context_fmha"] == ((weights, kv_cache) != ("int4_awq", "fp8"))


def test_prompts_are_cut_only_where_context_attention_is_paged() -> None:
    cut = {name: cuts_prompts(build_config(engine_plan(name))) for name in ENGINE_RECIPES}
    assert [name for name, does in cut.items() if not does] == ["llama-3.1-70b-tp4"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"architecture": "Qwen3MoeForCausalLM"}, "known are LlamaForCausalLM"),
        ({"rope": "yarn"}, "rotary embedding yarn"),
    ],
)
def test_what_upstream_would_get_wrong_is_refused(changes: dict[str, object], words: str) -> None:
    plan = engine_plan("qwen3-8b")
    shape = plan.shape.model_copy(update=changes)
    with pytest.raises(BuildError, match=words):
        checkpoint_config(published_config("qwen3-8b"), shape, plan.recipe, None)


def test_rotary_embedding_is_read_under_both_of_its_names() -> None:
    plan = engine_plan("llama-3.1-70b-tp4")
    old = published_config("llama-3.1-70b")
    new = {key: value for key, value in old.items() if key not in ("rope_scaling", "rope_theta")}
    new["rope_parameters"] = {**old["rope_scaling"], "rope_theta": old["rope_theta"]}
    assert checkpoint_config(new, plan.shape, plan.recipe, 128) == checkpoint_config(old, plan.shape, plan.recipe, 128)
