from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from llm_engines import llm_engine

from roundhouse.build.engine import Engine
from roundhouse.build.trtllm.llm_arguments import LLM_ARGUMENTS, llm_arguments
from roundhouse.build.trtllm.upstream import ClassRecord, check_fields, upstream
from roundhouse.errors import BuildError, EngineError, UsageError
from roundhouse.serve.settings import Overrides
from roundhouse.serve.trtllm_arguments import LlmPlace, arguments_text, guard_of, serving_arguments

PLACE = LlmPlace(PurePosixPath("/models/e1"), home=PurePosixPath("/data"), library=PurePosixPath("/opt/guard.so"))


@pytest.fixture
def engine(tiny_engine: Engine, tmp_path: Path) -> Engine:
    """A tiny engine for the target `trtllm-pytorch`, guarded as its recipe says."""
    return llm_engine(tiny_engine, tmp_path / "engine", target_options={"env_overrides": {"NCCL_DEBUG": "WARN"}})


def test_without_a_page_check_the_arguments_are_the_engines(engine: Engine) -> None:
    arguments = serving_arguments(engine, PLACE, "off")
    assert arguments == {"model": "/models/e1/checkpoint", **llm_arguments(engine.manifest.plan)}
    assert not {"kv_connector_config", "disable_overlap_scheduler"} & arguments.keys()


def test_the_page_check_comes_through_the_connector_and_the_environment(engine: Engine) -> None:
    arguments = serving_arguments(engine, PLACE, "tags")
    assert arguments["disable_overlap_scheduler"]
    assert arguments["kv_cache_config"]["enable_partial_reuse"] is False
    assert arguments["kv_connector_config"]["connector_module"] == "roundhouse.serve.trtllm_guard.connector"
    assert arguments["env_overrides"] == {
        "NCCL_DEBUG": "WARN",
        "ROUNDHOUSE_GUARD_ENGINE": engine.manifest.id,
        "ROUNDHOUSE_GUARD_METRICS": "0.0.0.0:8003",
        "ROUNDHOUSE_GUARD_HOME": "/data",
        "ROUNDHOUSE_GUARD_LIBRARY": "/opt/guard.so",
    }
    assert check_fields(LLM_ARGUMENTS, arguments) == []


def test_overrides_change_the_arguments_and_are_checked(engine: Engine) -> None:
    assert serving_arguments(engine, PLACE, "off", Overrides(max_batch_size=3))["max_batch_size"] == 3
    with pytest.raises(UsageError, match="--kernels"):
        serving_arguments(engine, PLACE, "off", Overrides(kernels="torch"))


def test_overrides_that_upstream_or_the_page_check_refuses_are_refused(engine: Engine) -> None:
    with pytest.raises(UsageError, match="asserts that it is given less than all of the memory"):
        serving_arguments(engine, PLACE, "off", Overrides(memory_fraction=1))
    with pytest.raises(UsageError, match="max_num_tokens 16 is less than page_tokens 32"):
        serving_arguments(engine, PLACE, "off", Overrides(max_num_tokens=16))
    assert serving_arguments(engine, PLACE, "off", Overrides(max_num_tokens=16, page_tokens=16))["max_num_tokens"] == 16
    assert serving_arguments(engine, PLACE, "off", Overrides(memory_fraction=0.5))["kv_cache_config"]["max_tokens"] > 0


def test_what_is_not_known_of_a_place_is_not_said(engine: Engine) -> None:
    environment = serving_arguments(engine, LlmPlace(PurePosixPath("/e")), "tags")["env_overrides"]
    assert not {"ROUNDHOUSE_GUARD_HOME", "ROUNDHOUSE_GUARD_LIBRARY"} & environment.keys()


def test_the_connector_is_two_classes_of_upstreams() -> None:
    for kind in ("KvCacheConnectorScheduler", "KvCacheConnectorWorker"):
        record = upstream().records[f"tensorrt_llm._torch.pyexecutor.kv_cache_connector.{kind}"]
        assert isinstance(record, ClassRecord)


def test_the_guard_is_the_recipes_unless_another_is_asked_for(engine: Engine) -> None:
    assert guard_of(engine, None) == "tags"
    assert guard_of(engine, "off") == "off"


def test_a_page_check_that_the_engine_cannot_have_is_refused(build_engine: Any, tmp_path: Path) -> None:
    engine = llm_engine(build_engine("llama", weights="fp8"), tmp_path / "engine", guard="off", pipeline_parallel=2)
    assert guard_of(engine, None) == "off"
    with pytest.raises(UsageError, match="refuses pipeline parallelism"):
        guard_of(engine, "tags")
    with pytest.raises(UsageError, match="is for the torch target only"):
        guard_of(engine, "tags+content")


def test_engines_of_other_targets_have_no_arguments(tiny_engine: Engine) -> None:
    with pytest.raises(UsageError, match="is for the target torch"):
        serving_arguments(tiny_engine, PLACE, "off")


def test_arguments_that_cannot_be_read_or_are_none_are_refused(engine: Engine) -> None:
    path = engine.folder / "compiled" / "llm.yaml"
    path.write_text("max_batchsize: 1\n")
    with pytest.raises(BuildError, match="the nearest that it knows is max_batch_size"):
        serving_arguments(engine, PLACE, "off")
    for text in ("[", "- 1\n", ""):
        path.write_text(text)
        with pytest.raises(EngineError, match=r"llm\.yaml"):
            serving_arguments(engine, PLACE, "off")
    path.unlink()
    with pytest.raises(EngineError, match="cannot be read"):
        serving_arguments(engine, PLACE, "off")


def test_the_text_reads_back() -> None:
    arguments = {"model": "/e", "kv_cache_config": {"dtype": "fp8"}, "max_seq_len": 5}
    text = arguments_text(arguments, about="what it is")
    assert text.startswith("# what it is\nmodel: /e\n")
    assert yaml.safe_load(text) == arguments
