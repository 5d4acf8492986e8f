"""What plans and exports say of the page check's conditions is what the gate in each rank wants."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import yaml
from rank_twins import llm_arguments
from trtllm_recipes import GOLDEN, LLM_RECIPES, llm_plan

from roundhouse.build.merging import merged
from roundhouse.serve.trtllm_guard import gate

GUARDED = [name for name in LLM_RECIPES if llm_plan(name).recipe.guard != "off"]

REFUSED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"disable_overlap_scheduler": False}, {}),
    ({"pipeline_parallel_size": 2}, {"pipeline_parallel": 2}),
    ({"context_parallel_size": 2}, {}),
    ({"enable_attention_dp": True}, {"attention_data_parallel": True}),
    ({"kv_cache_config": {"host_cache_size": 1024}}, {}),
    ({"kv_cache_config": {"enable_partial_reuse": True}}, {}),
    ({"kv_cache_config": {"max_attention_window": [128]}}, {}),
    ({"max_beam_width": 2}, {}),
    ({"speculative_config": {"decoding_type": "MTP"}}, {}),
    ({"cache_transceiver_config": {"backend": "UCX"}}, {}),
    ({"orchestrator_type": "ray"}, {}),
]
"""Arguments that the gate refuses, and what a recipe has to say to get them, where that is no ``target_options``."""


def said(arguments: dict[str, Any]) -> list[str]:
    """The gate's complaints about arguments, with the recorded defaults below them."""
    return gate.argument_problems(llm_arguments(**arguments), {})


def golden(name: str) -> dict[str, Any]:
    arguments: dict[str, Any] = yaml.safe_load((GOLDEN / f"llmapi-{name}.yaml").read_text())
    del arguments["triton_config"]
    return arguments


def test_most_of_the_table_is_guarded() -> None:
    assert {"smollm2", "llama-3.1-70b-tp4", "qwen3-30b-a3b"} <= set(GUARDED)


@pytest.mark.parametrize("name", GUARDED)
def test_a_guarded_deployment_is_one_that_the_gate_lets_in(name: str) -> None:
    arguments = golden(name)
    assert gate.argument_problems(llm_arguments(**arguments), arguments["env_overrides"]) == []


@pytest.mark.parametrize(("arguments", "keys"), REFUSED, ids=lambda each: ",".join(each))
def test_what_the_gate_refuses_is_refused_when_it_is_planned(arguments: dict[str, Any], keys: dict[str, Any]) -> None:
    assert len(said(merged(golden("smollm2"), arguments))) == 1
    problems = llm_plan("smollm2", **(keys or {"target_options": arguments})).problems
    assert "guard" in {problem.code for problem in problems}


def test_ranks_without_mpi_are_refused_by_both() -> None:
    assert len(gate.argument_problems(llm_arguments(**golden("smollm2")), {"TLLM_DISABLE_MPI": "1"})) == 1
    plan = llm_plan("smollm2", target_options={"env_overrides": {"TLLM_DISABLE_MPI": "1"}})
    assert [problem.code for problem in plan.problems] == ["guard"]


def test_nothing_that_the_gate_refuses_is_left_out_here() -> None:
    arguments = golden("smollm2")
    for refused, _ in REFUSED:
        arguments = merged(arguments, refused)
    assert len(said(arguments)) == inspect.getsource(gate._argument_problems).count("yield ")
