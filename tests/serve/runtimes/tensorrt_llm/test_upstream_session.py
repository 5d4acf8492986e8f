"""What is asked of TensorRT-LLM's and MPI's modules, on twins whose signatures are the recorded ones."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import upstream_twin
from engine_configs import geometry

from roundhouse.build.compiled import CompiledGuard
from roundhouse.build.trtllm.upstream import check_fields, parameters_of
from roundhouse.errors import ServeError, SetupError
from roundhouse.plugins.torch_guard import torch_page_guard
from roundhouse.serve.runtimes.tensorrt_llm.link import Forward
from roundhouse.serve.runtimes.tensorrt_llm.mpi_link import MpiLink
from roundhouse.serve.runtimes.tensorrt_llm.ranks import rank_parts
from roundhouse.serve.runtimes.tensorrt_llm.upstream_host import UpstreamHost
from roundhouse.serve.runtimes.tensorrt_llm.upstream_session import AllReduceWorkspace, UpstreamSession

ENGINE = b"in:input_ids,position_ids;out:logits"


@pytest.mark.parametrize(
    ("twin", "record"),
    [
        (upstream_twin.Session.from_serialized_engine, "tensorrt_llm.runtime.session.Session.from_serialized_engine"),
        (upstream_twin.Session.set_shapes, "tensorrt_llm.runtime.session.Session.set_shapes"),
        (upstream_twin.Session.run, "tensorrt_llm.runtime.session.Session.run"),
        (
            upstream_twin.CustomAllReduceHelper.allocate_workspace,
            "tensorrt_llm.plugin.plugin.CustomAllReduceHelper.allocate_workspace",
        ),
        (
            upstream_twin.CustomAllReduceHelper.max_workspace_size_auto,
            "tensorrt_llm.plugin.plugin.CustomAllReduceHelper.max_workspace_size_auto",
        ),
    ],
)
def test_the_twins_are_called_as_upstream_is(twin: Any, record: str) -> None:
    mine = [each for each in inspect.signature(twin).parameters.values() if each.name != "self"]
    recorded = parameters_of(record)
    assert [each.name for each in mine] == [each.name for each in recorded]
    assert [each.default is inspect.Parameter.empty for each in mine] == [each.required for each in recorded]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    upstream_twin.install(monkeypatch)
    return UpstreamSession(ENGINE)


def tensors(rows: int = 3) -> dict[str, torch.Tensor]:
    return {name: torch.zeros(rows, dtype=torch.int32) for name in ("input_ids", "position_ids")}


def test_an_engine_tells_what_it_takes_and_runs_on_the_stream_it_is_given(session: Any) -> None:
    assert session.inputs == {"input_ids", "position_ids"}
    assert session.outputs == {"logits"}
    inputs, outputs = tensors(), {"logits": torch.zeros(3, 8)}
    session.run(inputs, outputs, 99)
    assert session._session.ran == [(inputs, outputs, 99)]


def test_a_step_beyond_the_engine_s_limits_is_refused(session: Any) -> None:
    with pytest.raises(ServeError, match=r"takes no such step: Couldn't assign input_ids with shape \(5,\)"):
        session.run(tensors(5), {}, 99)


def test_a_launch_that_tensorrt_refuses_is_an_error(session: Any) -> None:
    session._session.accepts = False
    with pytest.raises(ServeError, match="TensorRT refused to run a step"):
        session.run(tensors(), {}, 99)


def test_bytes_that_are_no_engine_of_this_tensorrt_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream_twin.install(monkeypatch)
    with pytest.raises(ServeError, match="TensorRT does not take the engine") as refused:
        UpstreamSession(b"other")
    assert "the kind of GPU that it was built with" in str(refused.value.hint)


def test_a_gpu_without_room_for_the_engine_s_context_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream_twin.install(monkeypatch)
    with pytest.raises(ServeError, match="cannot begin to run the engine: Failed to create an execution context!") as refused:
        UpstreamSession(ENGINE + b",large")
    assert "free memory on it" in str(refused.value.hint)


def test_without_tensorrt_llm_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt_llm", None)
    with pytest.raises(SetupError, match="TensorRT-LLM cannot be imported"):
        UpstreamSession(ENGINE)


def test_ranks_that_share_layers_get_upstream_s_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream_twin.install(monkeypatch)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    built = geometry(tp=4, pp=2)
    workspace = AllReduceWorkspace(built, rank_parts(built)[6])
    assert workspace.tensor.tolist() == [4000, 6]
    mapping, _ = workspace._buffers
    assert mapping.keys == {"world_size": 8, "rank": 6, "gpus_per_node": 4, "tp_size": 4, "pp_size": 2}
    assert check_fields("tensorrt_llm.mapping.Mapping", mapping.keys) == []
    host = UpstreamHost()
    alone = geometry(pp=2)
    assert host.workspace(alone, rank_parts(alone)[1]) is None
    assert isinstance(host.workspace(built, rank_parts(built)[0]), AllReduceWorkspace)


def test_a_link_talks_on_a_communicator_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    world = upstream_twin.install(monkeypatch, size=4, rank=2)
    link = UpstreamHost().link(4)
    assert (link.rank, link.size) == (2, 4)
    assert world.calls == [("Dup",)]
    assert link.command(Forward(3)) == Forward(3)
    assert link.exchange("a") == ["a"] * 4
    link.send("logits", 0)
    assert link._comm.calls == [("bcast", 0), ("send", "logits", 0)]
    assert link.receive(3) == "from 3"


def test_another_number_of_ranks_is_refused_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream_twin.install(monkeypatch, size=1)
    with pytest.raises(ServeError, match="the engine has 4 ranks, and MPI started 1") as refused:
        MpiLink(4)
    assert refused.value.hint == "The engine process is started with mpirun -n 4."
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    with pytest.raises(SetupError, match="mpi4py cannot be imported"):
        MpiLink(4)


def test_the_guard_is_the_one_that_was_built_and_else_torch_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = UpstreamHost()
    assert host.guard(None, tmp_path) is torch_page_guard
    built = CompiledGuard(file="guard.engine", plugin="embedded", rows=8, columns=16, pages=64)
    with pytest.raises(SetupError, match=r"guard\.engine: No such file"):
        host.guard(built, tmp_path)
    (tmp_path / "guard.engine").write_bytes(b"engine")
    monkeypatch.delenv("ROUNDHOUSE_GUARD_PLUGIN", raising=False)
    with pytest.raises(SetupError, match="needs its plugin, and ROUNDHOUSE_GUARD_PLUGIN names none"):
        host.guard(built.model_copy(update={"plugin": "library"}), tmp_path)


def test_a_rank_beyond_the_gpus_that_are_seen_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(SetupError, match="rank 2 has no GPU: torch sees 2 here"):
        UpstreamHost().device(2)


def test_without_a_gpu_it_says_so() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(SetupError, match="torch sees no GPU here"):
        UpstreamHost().device(0)
