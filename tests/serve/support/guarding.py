"""A guarded executor: the twins, with the page check put in place as in a rank of TensorRT-LLM."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

import executor_twins as twins

from roundhouse.plugins.guard import TorchPageGuard
from roundhouse.serve.engine.integrity import IntegrityEvent
from roundhouse.serve.trtllm_guard.check import StepCheck
from roundhouse.serve.trtllm_guard.connector import GuardScheduler, GuardWorker
from roundhouse.serve.trtllm_guard.install import Touched, install
from roundhouse.serve.trtllm_guard.telling import GuardState

__all__ = ["Guarded", "make_guarded", "touched_twins"]


@dataclass
class Guarded:
    """One rank."""

    executor: Any
    check: StepCheck
    events: list[IntegrityEvent]

    @property
    def manager(self) -> Any:
        return self.executor.kv_cache_manager

    @property
    def blocks(self) -> twins.Blocks:
        blocks: twins.Blocks = self.manager.impl
        return blocks

    def submit(self, *requests: twins.LlmRequest) -> None:
        self.executor.active_requests += requests

    def drain(self, steps: int = 400) -> None:
        for _ in range(steps):
            if not self.executor.active_requests:
                return
            self.executor.step()
        raise AssertionError("requests are left")


def touched_twins() -> Touched:
    """Fresh copies of what is hooked, so that a test leaves the twins as they were."""
    util = types.SimpleNamespace(get_kv_cache_manager_cls=lambda model_config: twins.KVCacheManager)
    executor = type("PyExecutor", (twins.PyExecutor,), {})
    connector = type("KvCacheConnectorManager", (twins.KvCacheConnectorManager,), {})
    return Touched(util, executor, connector)


def make_guarded(
    dist: twins.Distributed | None = None, *, batch: int = 8, chunk: int = 1000, guard: bool = True, **manager: Any
) -> Guarded:
    events: list[IntegrityEvent] = []
    check = StepCheck(TorchPageGuard(), GuardState("engine"), events.append)
    check.write_events()
    there = touched_twins()
    if guard:
        install(check, there)
    dist = dist or twins.Distributed.of(1)[0]
    # Without its constructor: the worker's gate and handshake have tests of their own.
    worker = GuardWorker.__new__(GuardWorker)
    connector = there.connector_manager(worker, GuardScheduler(None) if dist.rank == 0 else None)
    kept = there.util.get_kv_cache_manager_cls(None)(**manager)
    return Guarded(there.executor(kept, connector, dist, batch=batch, chunk=chunk), check, events)
