"""A rank from its start: what TensorRT-LLM imports and calls, on a package that is made like it."""

from __future__ import annotations

import importlib
import inspect
import json
import multiprocessing
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import executor_twins
import pytest
from executor_twins import Distributed, LlmRequest, expected_answer
from lean_python import run_lean
from rank_twins import (
    CONNECTOR,
    GUARD_ARGUMENTS,
    llm_arguments,
    rank_main,
    run_with_a_taken_page,
    start_rank,
    write_package,
)

from roundhouse.build.home import Home
from roundhouse.build.trtllm.upstream import ClassRecord, check_fields, upstream
from roundhouse.errors import ServeError
from roundhouse.serve.integrity_events import read_events
from roundhouse.serve.trtllm_guard import connector
from roundhouse.serve.trtllm_guard.connector import GuardScheduler, GuardWorker

ALONE = SimpleNamespace(rank=0, size=1)
"""The communicator of a single rank: it sends nothing."""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The twin package, importable, and forgotten afterwards."""
    folder = write_package(tmp_path / "site")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("ROUNDHOUSE_GUARD_METRICS", "127.0.0.1:0")
    monkeypatch.setenv("ROUNDHOUSE_GUARD_ENGINE", "14cadfd1")
    monkeypatch.setenv("ROUNDHOUSE_GUARD_HOME", str(tmp_path / "home"))
    importlib.import_module("tensorrt_llm._utils").communicator = ALONE
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorrt_llm"]:
        del sys.modules[name]


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[GuardWorker]]:
    """The workers that are made, whose servers end with the test."""
    made: list[GuardWorker] = []

    class Noted(GuardWorker):
        def __init__(self, llm_args: Any) -> None:
            super().__init__(llm_args)
            made.append(self)

    monkeypatch.setattr(connector, "GuardWorker", Noted)
    yield made
    for each in made:
        if each._server is not None:
            each._server.close()


def ready(worker: GuardWorker) -> dict[str, Any]:
    assert worker._server is not None
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{worker._server.port}/ready", timeout=10) as answer:
            body = answer.read()
    except urllib.error.HTTPError as error:
        with error:
            body = error.read()
    told: dict[str, Any] = json.loads(body)
    return told


def test_a_rank_is_guarded_from_its_first_step(package: Path, worker: list[GuardWorker], tmp_path: Path) -> None:
    executor = start_rank(llm_arguments(**GUARD_ARGUMENTS), Distributed.of(1)[0], estimate=True)
    assert ready(worker[0]) == {"ready": True, "ranks": 1, "checks": 0, "problem": None}
    run_with_a_taken_page(executor)
    assert executor.answers == {2: expected_answer([4, 3, 2], 4)}
    (event,) = read_events(Home(tmp_path / "home").integrity_events)
    assert (event.request_id, event.engine) == ("1", "14cadfd1")
    assert ready(worker[0])["checks"] == 4


def test_probes_are_answered_before_the_rank_is_ready(package: Path, worker: list[GuardWorker]) -> None:
    made = connector.GuardWorker(llm_arguments(**GUARD_ARGUMENTS))
    made.register_forward_pass_callable()
    assert "not every rank" in ready(made)["problem"]


def test_a_second_engine_of_one_process_is_checked_once(package: Path, worker: list[GuardWorker]) -> None:
    start_rank(llm_arguments(**GUARD_ARGUMENTS), Distributed.of(1)[0])
    executor = start_rank(llm_arguments(**GUARD_ARGUMENTS), Distributed.of(1)[0])
    executor.active_requests.append(LlmRequest(1, [1, 2, 3], 4))
    while executor.active_requests:
        executor.step()
    assert [ready(each)["checks"] for each in worker] == [0, 4]


@pytest.mark.parametrize("version", ["1.2.0", "1.3.0rc20", "1.3.0rc21"])
def test_a_version_that_is_not_known_is_refused(version: str, tmp_path: Path, package: Path, worker: list[GuardWorker]) -> None:
    for described in package.glob("*.dist-info"):
        described.rename(package / f"tensorrt_llm-{version}.dist-info")
        (package / f"tensorrt_llm-{version}.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: tensorrt_llm\nVersion: {version}\n"
        )
    with pytest.raises(ServeError, match=f"rank 0: the page check knows TensorRT-LLM 1.2.1, and here is {version}"):
        start_rank(llm_arguments(**GUARD_ARGUMENTS), Distributed.of(1)[0])
    executor = importlib.import_module("tensorrt_llm._torch.pyexecutor.py_executor").PyExecutor
    assert not hasattr(executor._forward_step, "roundhouse_original")


def test_arguments_that_hide_pages_are_refused(package: Path, worker: list[GuardWorker]) -> None:
    with pytest.raises(ServeError, match="rank 0: disable_overlap_scheduler must be true"):
        start_rank(llm_arguments(**GUARD_ARGUMENTS | {"disable_overlap_scheduler": False}), Distributed.of(1)[0])


def test_pages_of_a_manager_that_notes_nothing_are_refused(package: Path, worker: list[GuardWorker]) -> None:
    made = connector.GuardWorker(llm_arguments(**GUARD_ARGUMENTS))
    made.register_forward_pass_callable()
    with pytest.raises(ServeError, match="not those of a manager that notes its grants"):
        made.register_kv_caches(executor_twins.KVCacheManager().get_unique_primary_pool())
    assert made._check is not None
    assert made._check.state.problem() is not None


def test_a_wrong_variable_is_told_at_the_handshake(
    package: Path, worker: list[GuardWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUNDHOUSE_GUARD_METRIC", "x")
    with pytest.raises(ServeError, match="ROUNDHOUSE_GUARD_METRIC is not known"):
        start_rank(llm_arguments(**GUARD_ARGUMENTS), Distributed.of(1)[0])


def test_a_library_that_cannot_be_loaded_is_told_at_the_handshake(
    package: Path, worker: list[GuardWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUNDHOUSE_GUARD_LIBRARY", "/nowhere/guard.so")
    with pytest.raises(ServeError, match="the CUDA page guard cannot be loaded"):
        start_rank(llm_arguments(**GUARD_ARGUMENTS), Distributed.of(1)[0])


def test_ranks_that_are_fresh_processes_agree(tmp_path: Path) -> None:
    """Nothing of this process is theirs: they import what the arguments name."""
    package = write_package(tmp_path / "site")
    context = multiprocessing.get_context("spawn")
    ends = context.Pipe()
    reports = [context.Pipe(duplex=False) for _ in range(2)]
    environment = {"ROUNDHOUSE_GUARD_METRICS": "127.0.0.1:0"}
    given = [(rank, ends[rank], reports[rank][1], str(package), environment) for rank in (0, 1)]
    ranks = [context.Process(target=rank_main, args=arguments) for arguments in given]
    for rank in ranks:
        rank.start()
    told = [report.recv() for report, _ in reports]
    for rank in ranks:
        rank.join(timeout=30)
    for answers, errors in told:
        assert answers == {2: expected_answer([1, 2, 3, 2], 4)}
        assert errors.keys() == {1}


CONNECTED = {"KvCacheConnectorWorker": GuardWorker, "KvCacheConnectorScheduler": GuardScheduler}


@pytest.mark.parametrize("recorded", CONNECTED)
def test_the_connector_has_every_method_that_is_recorded(recorded: str) -> None:
    record = upstream().records[f"tensorrt_llm._torch.pyexecutor.kv_cache_connector.{recorded}"]
    assert isinstance(record, ClassRecord)
    for method, parameters in record.methods.items():
        names = list(inspect.signature(getattr(CONNECTED[recorded], method)).parameters)[1:]
        assert names == [parameter.name for parameter in parameters], method


def test_what_the_arguments_must_say_is_known_to_tensorrt_llm() -> None:
    arguments = "tensorrt_llm.llmapi.llm_args.TorchLlmArgs"
    assert check_fields(arguments, {**GUARD_ARGUMENTS, "kv_connector_config": CONNECTOR}) == []


IMPORTED = {
    "annotated_types",
    "msgspec",
    "numpy",
    "packaging",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
}
"""What others wrote and the connector imports. TensorRT-LLM needs all of it itself, but msgspec."""


def test_the_connector_imports_nothing_but_this_of_what_others_wrote() -> None:
    installed = packages_distributions().keys() - sys.stdlib_module_names - {"roundhouse"}
    code = f"import {CONNECTOR['connector_module']}\nprint(*{{name.partition('.')[0] for name in sys.modules}} - STARTED)"
    loaded = run_lean(code, hidden=installed - IMPORTED)
    assert installed & set(loaded.split()) == IMPORTED


A_RANK = """
import importlib, types
from executor_twins import Distributed
from rank_twins import GUARD_ARGUMENTS, llm_arguments, run_with_a_taken_page, start_rank
importlib.import_module("tensorrt_llm._utils").communicator = types.SimpleNamespace(rank=0, size=1)
executor = start_rank(llm_arguments(**GUARD_ARGUMENTS), Distributed.of(1)[0])
run_with_a_taken_page(executor)
print(*executor.answers, *executor.errors)
"""


def test_a_rank_stops_and_writes_down_without_what_the_package_has_beside(tmp_path: Path) -> None:
    """Not only its start: what is imported later is there, too."""
    home = tmp_path / "home"
    told = run_lean(
        A_RANK,
        hidden=["platformdirs", "psutil", "rich", "typer", "xxhash", "yaml"],
        folders=[Path(executor_twins.__file__).parent, write_package(tmp_path / "site")],
        environment=os.environ | {"ROUNDHOUSE_GUARD_METRICS": "127.0.0.1:0", "ROUNDHOUSE_GUARD_HOME": str(home)},
    )
    assert told.split() == ["2", "1"]
    assert [event.request_id for event in read_events(Home(home).integrity_events)] == ["1"]
