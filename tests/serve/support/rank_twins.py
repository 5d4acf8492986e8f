"""A rank of a twin TensorRT-LLM: a small package of that name, and what a rank of it does from its start to its first step.

The package holds subclasses of the twins under TensorRT-LLM's module names, so that the page check finds and hooks them there.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from roundhouse.build.trtllm.upstream import fields_of

__all__ = [
    "GUARD_ARGUMENTS",
    "PipeCommunicator",
    "llm_arguments",
    "rank_main",
    "run_with_a_taken_page",
    "start_rank",
    "write_package",
]

CONNECTOR = {
    "connector_module": "roundhouse.serve.trtllm_guard.connector",
    "connector_scheduler_class": "GuardScheduler",
    "connector_worker_class": "GuardWorker",
}
GUARD_ARGUMENTS: dict[str, Any] = {"disable_overlap_scheduler": True, "kv_cache_config": {"enable_partial_reuse": False}}
"""What the page check needs of the LLM arguments, beside the connector."""

_MODULES = {
    "__init__": "",
    "_utils": "communicator = None\ndef mpi_comm():\n    return communicator\n",
    "_torch/__init__": "",
    "_torch/distributed/__init__": "",
    "_torch/distributed/communicator": "class Distributed(executor_twins.Distributed): ...\n",
    "_torch/pyexecutor/__init__": "",
    "_torch/pyexecutor/_util": "def get_kv_cache_manager_cls(model_config):\n    return executor_twins.KVCacheManager\n",
    "_torch/pyexecutor/py_executor": "class PyExecutor(executor_twins.PyExecutor): ...\n",
    "_torch/pyexecutor/kv_cache_connector": "class KvCacheConnectorManager(executor_twins.KvCacheConnectorManager): ...\n",
    "_torch/pyexecutor/resource_manager": "class KVCacheManager(executor_twins.KVCacheManager): ...\n",
    "_torch/pyexecutor/scheduler": "class ScheduledRequests(executor_twins.ScheduledRequests): ...\n",
}


def write_package(folder: Path, version: str = "1.2.1") -> Path:
    """Write the twin package and what names its version."""
    for name, text in _MODULES.items():
        module = folder / "tensorrt_llm" / f"{name}.py"
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(f"import executor_twins\n{text}")
    described = folder / f"tensorrt_llm-{version}.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tensorrt_llm\nVersion: {version}\n")
    return folder


def llm_arguments(**changes: Any) -> SimpleNamespace:
    """LLM arguments with the defaults that are recorded."""
    cache = _defaults("KvCacheConfig") | changes.pop("kv_cache_config", {})
    return SimpleNamespace(**_defaults("TorchLlmArgs") | {"kv_cache_config": SimpleNamespace(**cache)} | changes)


def _defaults(name: str) -> dict[str, Any]:
    return {key: field.default for key, field in fields_of(f"tensorrt_llm.llmapi.llm_args.{name}").items()}


def start_rank(arguments: Any, dist: Any, *, estimate: bool = False) -> Any:
    """What ``create_py_executor`` does about the connector, in its order. Returns the executor, ready to run."""
    module = importlib.import_module(CONNECTOR["connector_module"])
    workers: list[Any] = []
    thread = threading.Thread(target=lambda: workers.append(getattr(module, CONNECTOR["connector_worker_class"])(arguments)))
    thread.start()
    thread.join()
    (worker,) = workers
    scheduler = getattr(module, CONNECTOR["connector_scheduler_class"])(arguments) if dist.rank == 0 else None
    assert worker.register_forward_pass_callable() is None
    pyexecutor = "tensorrt_llm._torch.pyexecutor."
    connector = importlib.import_module(pyexecutor + "kv_cache_connector").KvCacheConnectorManager(worker, scheduler)
    manager_class = importlib.import_module(pyexecutor + "_util").get_kv_cache_manager_cls(None)
    for _ in range(1 + estimate):
        manager = manager_class(pages=32)
        executor = importlib.import_module(pyexecutor + "py_executor").PyExecutor(manager, connector, dist)
    worker.register_kv_caches(manager.get_unique_primary_pool())
    return executor


def run_with_a_taken_page(executor: Any) -> None:
    """Two requests to their end; after a step, the first presents a page of the second's."""
    import executor_twins

    executor.active_requests += [executor_twins.LlmRequest(1, [1, 2, 3], 4), executor_twins.LlmRequest(2, [4, 3, 2], 4)]
    executor.step()
    blocks = executor.kv_cache_manager.impl
    blocks.sequences[1][0] = blocks.sequences[2][0]
    while executor.active_requests:
        executor.step()


class PipeCommunicator:
    """One of two ranks that are processes with a pipe between them; mpi4py's interface, and an allgather."""

    size = tp_size = 2

    def __init__(self, rank: int, pipe: Connection) -> None:
        self.rank = rank
        self._pipe = pipe
        self._came: dict[int, list[Any]] = {}

    def isend(self, obj: object, dest: int, tag: int) -> Any:
        self._pipe.send((tag, obj))
        return self

    def wait(self) -> None:
        """The pipe has room for it."""

    def iprobe(self, source: int, tag: int) -> bool:
        while self._pipe.poll():
            came, obj = self._pipe.recv()
            self._came.setdefault(came, []).append(obj)
        return bool(self._came.get(tag))

    def recv(self, *, source: int, tag: int) -> Any:
        while not self.iprobe(source, tag):
            self._pipe.poll(1.0)
        return self._came[tag].pop(0)

    def tp_allgather(self, obj: Any) -> list[Any]:
        self.isend(obj, 1 - self.rank, 0)
        other = self.recv(source=1 - self.rank, tag=0)
        return [obj, other] if self.rank == 0 else [other, obj]


def rank_main(rank: int, pipe: Connection, report: Connection, package: str, environment: dict[str, str]) -> None:
    """A process that starts fresh: it knows of the page check only what the arguments name."""
    os.environ.update(environment)
    sys.path.insert(0, package)
    import executor_twins

    ranks = PipeCommunicator(rank, pipe)
    importlib.import_module("tensorrt_llm._utils").communicator = ranks
    try:
        executor = start_rank(llm_arguments(**GUARD_ARGUMENTS, tensor_parallel_size=2), ranks)
        for number in (1, 2):
            executor.active_requests.append(executor_twins.LlmRequest(number, [1, 2, 3, number], 4))
        executor.step()
        if rank == 1:
            blocks = executor.kv_cache_manager.impl
            blocks.sequences[1][0] = blocks.sequences[2][0]
        while executor.active_requests:
            executor.step()
        report.send((executor.answers, executor.errors))
    except Exception as error:
        report.send((type(error).__name__, str(error)))
