"""Puts the page check into this rank's TensorRT-LLM, before its KV cache manager and its executor are made."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from roundhouse.build.home import Home
from roundhouse.errors import SetupError
from roundhouse.plugins.guard import TorchPageGuard

from ..integrity_events import EventsFile
from .check import StepCheck
from .manager import guarded_manager
from .protocols import Executor, ScheduledBatch
from .settings import GuardSettings
from .telling import GuardState

__all__ = ["Touched", "create_check", "install", "touched"]

_EXECUTOR = "tensorrt_llm._torch.pyexecutor."
_ORIGINAL = "roundhouse_original"
_NOBODY = SimpleNamespace(context_requests=(), generation_requests=())
"""A batch without requests, as far as the connector's manager reads one."""


@dataclass(frozen=True)
class Touched:
    """What of TensorRT-LLM is changed."""

    util: Any
    """The module ``_util``: what makes a KV cache manager asks it for the class."""
    executor: Any
    """The class ``PyExecutor``."""
    connector_manager: Any
    """The class ``KvCacheConnectorManager``."""


def touched() -> Touched:
    """TensorRT-LLM's own.

    Raises:
        SetupError: it cannot be imported.
    """
    try:
        util = importlib.import_module(_EXECUTOR + "_util")
        executor = importlib.import_module(_EXECUTOR + "py_executor").PyExecutor
        connector = importlib.import_module(_EXECUTOR + "kv_cache_connector").KvCacheConnectorManager
    except (ImportError, AttributeError) as error:
        raise SetupError(f"the page check does not find what it hooks in TensorRT-LLM: {error}") from error
    return Touched(util, executor, connector)


def create_check(settings: GuardSettings) -> StepCheck:
    """The check of one rank.

    Raises:
        SetupError: the CUDA guard that the settings name cannot be loaded.
    """
    if settings.library is not None:
        from roundhouse.plugins.native_guard import CudaGuard, load_cuda_guard
        from roundhouse.plugins.page_guard_op import use_kernels

        use_kernels("cuda", CudaGuard(load_cuda_guard(settings.library)))
    file = EventsFile(Home(settings.home).integrity_events, settings.engine) if settings.home else None
    return StepCheck(TorchPageGuard(), GuardState(settings.engine), file)


def install(check: StepCheck, there: Touched) -> None:
    """Hook it in. What a former engine of this process hooked in is replaced, not wrapped again."""

    def manager_class(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.cache
        def guarded(base: Any) -> Any:
            return guarded_manager(base, check.made)

        def get_kv_cache_manager_cls(*arguments: Any, **keywords: Any) -> Any:
            return guarded(original(*arguments, **keywords))

        return get_kv_cache_manager_cls

    def start_batch(original: Callable[..., Any]) -> Callable[..., Any]:
        def _kv_connector_start_batch(self: Executor, scheduled_batch: ScheduledBatch) -> Any:
            result = original(self, scheduled_batch)
            check.before_step(self, scheduled_batch)
            return result

        return _kv_connector_start_batch

    def forward_step(original: Callable[..., Any]) -> Callable[..., Any]:
        def _forward_step(self: Executor, scheduled_requests: ScheduledBatch, *arguments: Any, **keywords: Any) -> Any:
            check.step(scheduled_requests)
            return original(self, scheduled_requests, *arguments, **keywords)

        return _forward_step

    def scheduler_output(original: Callable[..., Any]) -> Callable[..., Any]:
        def build_scheduler_output(self: Any, _batch: ScheduledBatch, kv_cache_manager: Any) -> Any:
            """It would copy every token of the batch for a scheduler that does not look at it, and keep them.

            Of nobody it copies nothing, and still drops what was noted of each request that began.
            """
            return original(self, _NOBODY, kv_cache_manager)

        return build_scheduler_output

    _replace(there.util, "get_kv_cache_manager_cls", manager_class)
    _replace(there.executor, "_kv_connector_start_batch", start_batch)
    _replace(there.executor, "_forward_step", forward_step)
    _replace(there.connector_manager, "build_scheduler_output", scheduler_output)


def _replace(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    current = getattr(owner, name)
    original = getattr(current, _ORIGINAL, current)
    replacement = functools.wraps(original)(make(original))
    setattr(replacement, _ORIGINAL, original)
    setattr(owner, name, replacement)
