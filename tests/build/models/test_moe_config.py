"""Experts: how many, how large, and in which layers, as transformers' own modules have it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from oracle import EXPERTS, config_of, model_of
from stored import MOE, shape_of

from roundhouse.build.models.config import shape_from_config
from roundhouse.errors import ModelError


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("qwen3_moe", {}),
        ("qwen3_moe", {"decoder_sparse_step": 1}),
        ("qwen3_moe", {"decoder_sparse_step": 3, "mlp_only_layers": [5]}),
        ("qwen2_moe", {"decoder_sparse_step": 2, "mlp_only_layers": [1, 4]}),
        ("deepseek_v3", {"first_k_dense_replace": 0}),
        ("deepseek_v3", {"first_k_dense_replace": 2}),
        ("glm4_moe", {"first_k_dense_replace": 6}),
        ("deepseek_v32", {"mlp_layer_types": ["dense", "sparse"] * 3}),
        ("glm_moe_dsa", {"first_k_dense_replace": 4}),
        ("mixtral", {}),
        ("gpt_oss", {}),
    ],
)
def test_sparse_layers_are_those_with_experts_in_transformers(family: str, changes: dict[str, Any]) -> None:
    config = config_of(family, num_hidden_layers=6, **changes)
    names = " ".join(model_of(config).state_dict())
    written = {key: value for key, value in config.to_dict().items() if key != "mlp_layer_types" or key in changes}
    found = shape_from_config(written | {"architectures": []}, stored_dtype="bfloat16").moe
    assert (found.layers if found else ()) == tuple(sorted({int(n) for n in re.findall(r"layers\.(\d+)\.mlp\.experts", names)}))


def test_a_dense_layer_every_so_often() -> None:
    """``moe_layer_freq`` of DeepSeek's first configs."""
    found = shape_of(**MOE, num_hidden_layers=7, first_k_dense_replace=1, moe_layer_freq=2).moe
    assert found is not None
    assert found.layers == (2, 4, 6)


@pytest.mark.parametrize("key", ["n_routed_experts", "num_experts", "num_local_experts"])
def test_the_number_of_experts_has_three_names(key: str) -> None:
    found = shape_of(**EXPERTS, **{key: 8}).moe
    assert found is not None
    assert (found.experts, found.experts_per_token, found.intermediate, found.shared_intermediate) == (8, 2, 16, 0)


@pytest.mark.parametrize("nothing", [{}, {"num_experts": 0}, {"num_local_experts": None, "n_routed_experts": 0}])
def test_a_model_without_experts_is_dense(nothing: dict[str, Any]) -> None:
    assert shape_of(**nothing).moe is None


@pytest.mark.parametrize(
    ("keys", "size"),
    [
        ({"n_shared_experts": 2}, 32),
        ({"shared_expert_intermediate_size": 24}, 24),
        ({"n_shared_experts": None}, 0),
    ],
)
def test_shared_experts_are_one_mlp(keys: dict[str, Any], size: int) -> None:
    found = shape_of(**EXPERTS, num_experts=8, **keys).moe
    assert found is not None
    assert found.shared_intermediate == size


def test_experts_without_a_size_of_their_own_are_as_large_as_the_mlp() -> None:
    found = shape_of(num_local_experts=8, num_experts_per_tok=2).moe
    assert found is not None
    assert found.intermediate == 512


def test_numbers_of_experts_that_disagree_are_both_shown() -> None:
    with pytest.raises(ModelError, match="n_routed_experts 8, num_experts 16 disagree"):
        shape_of(**EXPERTS, num_experts=16, n_routed_experts=8)
    assert shape_of(**EXPERTS, num_experts=8, n_routed_experts=8).moe


def test_more_experts_for_a_token_than_there_are_is_refused() -> None:
    with pytest.raises(ModelError, match="num_experts_per_tok is 9, num_experts only 8"):
        shape_of(num_experts=8, num_experts_per_tok=9)


def test_experts_of_which_nobody_knows_how_many_a_token_takes_are_refused() -> None:
    with pytest.raises(ModelError, match="has no num_experts_per_tok"):
        shape_of(num_experts=8)
