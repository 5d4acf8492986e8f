from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import executor_twins
import pytest
from rank_twins import GUARD_ARGUMENTS, llm_arguments, write_package

from roundhouse.build.trtllm.upstream import ClassRecord, ParameterSpec, parameters_of, upstream
from roundhouse.serve.trtllm_guard import manager, protocols
from roundhouse.serve.trtllm_guard.gate import (
    CALLS,
    KNOWN_VERSIONS,
    Call,
    argument_problems,
    surface_problems,
    version_problem,
)

PYEXECUTOR = "tensorrt_llm._torch.pyexecutor."


def test_the_known_version_is_the_recorded_one() -> None:
    assert upstream().version in KNOWN_VERSIONS
    assert version_problem("1.2.1") is None


@pytest.mark.parametrize("found", [None, "1.2.0", "1.2.2", "1.3.0rc20", "1.3.0"])
def test_other_versions_are_refused_by_name(found: str | None) -> None:
    problem = version_problem(found)
    assert problem is not None
    assert str(found or "none") in problem


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name.rpartition(".")[2])
def test_every_call_fits_the_record(call: Call) -> None:
    parameters = parameters_of(call.name)
    by_place = [each for each in parameters if each.kind == "plain"]
    assert call.arguments <= len(by_place)
    given = {each.name for each in by_place[: call.arguments]} | set(call.keywords)
    assert set(call.keywords) <= {each.name for each in parameters if each.kind in ("plain", "keyword")}
    assert [each.name for each in parameters if each.required and each.name not in given] == []


RECORDED = {
    protocols.Request: ["llm_request.LlmRequest"],
    protocols.ScheduledBatch: ["scheduler.ScheduledRequests"],
    protocols.CacheManager: ["resource_manager.KVCacheManager"],
    protocols.Executor: ["py_executor.PyExecutor"],
}
OURS = {"page_book", "page_device", "forget_prefixes"}


@pytest.mark.parametrize("protocol", RECORDED, ids=lambda protocol: protocol.__name__)
def test_what_is_used_is_recorded(protocol: type) -> None:
    records = [upstream().records[PYEXECUTOR + name] for name in RECORDED[protocol]]
    known = {name for record in records if isinstance(record, ClassRecord) for name in (*record.methods, *record.attributes)}
    used = {*protocol.__annotations__, *(name for name in vars(protocol) if callable(getattr(protocol, name)))}
    assert {name for name in used if not name.startswith("__") and name not in dir(protocols.Protocol)} - OURS <= known


def test_the_manager_s_subclass_reads_only_what_is_recorded() -> None:
    tree = ast.parse(inspect.getsource(manager))
    read = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    }
    record = upstream().records[PYEXECUTOR + "resource_manager.KVCacheManager"]
    assert isinstance(record, ClassRecord)
    assert read - OURS <= {*record.methods, *record.attributes}
    assert {"is_vswa", "blocks_in_primary_pool", "get_batch_cache_indices"} <= read


def names(parameters: tuple[ParameterSpec, ...]) -> list[str]:
    return [parameter.name for parameter in parameters]


@pytest.mark.parametrize(
    ("twin", "recorded"),
    [
        (executor_twins.KVCacheManager, "resource_manager.KVCacheManager"),
        (executor_twins.PyExecutor, "py_executor.PyExecutor"),
        (executor_twins.ScheduledRequests, "scheduler.ScheduledRequests"),
        (executor_twins.KvCacheConnectorManager, "kv_cache_connector.KvCacheConnectorManager"),
    ],
)
def test_the_twins_are_called_as_the_record_says(twin: type, recorded: str) -> None:
    record = upstream().records[PYEXECUTOR + recorded]
    assert isinstance(record, ClassRecord)
    shared = [name for name in record.methods if name in vars(twin) and name != "__init__"]
    assert shared
    for name in shared:
        mine = list(inspect.signature(getattr(twin, name)).parameters)[1:]
        assert mine == names(record.methods[name]), name


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(write_package(tmp_path)))
    yield tmp_path / "tensorrt_llm"
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorrt_llm"]:
        del sys.modules[name]


def test_a_surface_as_it_is_recorded_has_no_problem(package: Path) -> None:
    assert surface_problems() == []


def test_what_is_gone_or_called_otherwise_is_named(package: Path) -> None:
    executor = package / "_torch" / "pyexecutor" / "py_executor.py"
    executor.write_text(
        "import executor_twins\n"
        "class PyExecutor(executor_twins.PyExecutor):\n"
        "    def _handle_errors(self, message, *, failed): ...\n"
        "    _kv_connector_start_batch = property()\n"
    )
    (package / "_utils.py").unlink()
    said = surface_problems()
    assert [line.partition(" ")[0].rpartition(".")[2] for line in said] == [
        "mpi_comm",
        "_handle_errors",
        "_kv_connector_start_batch",
    ]
    assert "is not there" in said[0]
    assert "cannot be called" in said[1]


def test_arguments_that_show_every_page_have_no_problem() -> None:
    assert argument_problems(llm_arguments(**GUARD_ARGUMENTS), {}) == []


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"disable_overlap_scheduler": False}, "disable_overlap_scheduler"),
        ({"pipeline_parallel_size": 2}, "pipeline_parallel_size"),
        ({"context_parallel_size": 2}, "context_parallel_size"),
        ({"enable_attention_dp": True}, "enable_attention_dp"),
        ({"max_beam_width": 2}, "max_beam_width"),
        ({"speculative_config": object()}, "speculative_config"),
        ({"cache_transceiver_config": object()}, "cache_transceiver_config"),
        ({"orchestrator_type": "ray"}, "the ranks must be MPI's"),
        ({"kv_cache_config": {"enable_partial_reuse": True}}, "kv_cache_config.enable_partial_reuse"),
        ({"kv_cache_config": {"enable_partial_reuse": False, "host_cache_size": 1 << 30}}, "kv_cache_config.host_cache_size"),
        ({"kv_cache_config": {"enable_partial_reuse": False, "max_attention_window": [64]}}, "kv_cache_config.max_attention"),
    ],
)
def test_arguments_that_hide_pages_are_named(changes: dict[str, Any], named: str) -> None:
    (said,) = argument_problems(llm_arguments(**GUARD_ARGUMENTS | changes), {})
    assert said.startswith(named)


def test_ranks_without_mpi_are_refused() -> None:
    (said,) = argument_problems(llm_arguments(**GUARD_ARGUMENTS), {"TLLM_DISABLE_MPI": "1"})
    assert "MPI" in said
