"""Whether the page check may load: on a TensorRT-LLM that it knows, with arguments under which it sees every page.

What it hooks is private to TensorRT-LLM. On another version it might guard nothing, and look as if it did. What is known of the
known one was read in its own pages where they have it, and in sources of that time where they have not (``upstream.json`` says
which): so every call is also compared with what is installed, and a step that was not checked ends the engine's readiness.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["CALLS", "KNOWN_VERSIONS", "Call", "argument_problems", "surface_problems", "version_problem"]

KNOWN_VERSIONS = ("1.2.1",)
_EXECUTOR = "tensorrt_llm._torch.pyexecutor."
_MANAGER = _EXECUTOR + "resource_manager.KVCacheManager."


class Call(NamedTuple):
    """Something of TensorRT-LLM that is called here, or called by it where ours stands in its place."""

    name: str
    """As it is recorded."""
    arguments: int
    """How many are given by position, without ``self``."""
    keywords: tuple[str, ...] = ()


CALLS = (
    Call("tensorrt_llm._utils.mpi_comm", 0),
    Call("tensorrt_llm._torch.distributed.communicator.Distributed.tp_allgather", 1),
    Call(_EXECUTOR + "_util.get_kv_cache_manager_cls", 1),
    Call(_EXECUTOR + "kv_cache_connector.KvCacheConnectorManager.build_scheduler_output", 2),
    Call(_EXECUTOR + "py_executor.PyExecutor._forward_step", 1),
    Call(_EXECUTOR + "py_executor.PyExecutor._handle_errors", 1, ("requests",)),
    Call(_EXECUTOR + "py_executor.PyExecutor._kv_connector_start_batch", 1),
    Call(_EXECUTOR + "scheduler.ScheduledRequests.all_requests", 0),
    Call(_MANAGER + "add_dummy_requests", 4),
    Call(_MANAGER + "free_resources", 1),
    Call(_MANAGER + "get_batch_cache_indices", 1),
    Call(_MANAGER + "get_cache_indices", 1),
    Call(_MANAGER + "get_unique_primary_pool", 0),
    Call(_MANAGER + "prepare_resources", 1),
    Call(_MANAGER + "reset_reuse_state", 0),
    Call(_MANAGER + "rewind_kv_cache", 2),
)

_NO_ARGUMENT = object()


def version_problem(found: str | None) -> str | None:
    """Why the check may not load on this version, or None."""
    if found in KNOWN_VERSIONS:
        return None
    known = ", ".join(KNOWN_VERSIONS)
    return f"the page check knows TensorRT-LLM {known}, and here is {found or 'none'}: it would not know what it checks"


def surface_problems(calls: tuple[Call, ...] = CALLS) -> list[str]:
    """What of the installed TensorRT-LLM cannot be called as it is called here."""
    return [problem for call in calls if (problem := _call_problem(call))]


def argument_problems(arguments: Any, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Why the check would not see every page under these LLM arguments.

    Args:
        arguments: ``TorchLlmArgs``.
        environment: of the rank.
    """
    return list(_argument_problems(arguments, environment))


def _argument_problems(arguments: Any, environment: Mapping[str, str]) -> Iterator[str]:
    cache = arguments.kv_cache_config
    if not arguments.disable_overlap_scheduler:
        yield "disable_overlap_scheduler must be true: a step would run before the one before it is answered"
    if arguments.pipeline_parallel_size > 1:
        yield "pipeline_parallel_size must be 1: the KV connector that installs the check refuses more"
    if arguments.context_parallel_size > 1:
        yield "context_parallel_size must be 1: a page's tokens would be spread over ranks"
    if arguments.enable_attention_dp:
        yield "enable_attention_dp must be false: each rank would run requests of its own"
    if cache.host_cache_size:
        yield "kv_cache_config.host_cache_size must be 0: a block that was in host memory comes back to another place"
    if cache.enable_partial_reuse:
        yield "kv_cache_config.enable_partial_reuse must be false: part of a block is copied from one that nobody names"
    if cache.max_attention_window:
        yield "kv_cache_config.max_attention_window must not be set: blocks outside of a window are freed under their request"
    if (arguments.max_beam_width or 1) > 1:
        yield "max_beam_width must be 1: beams share and swap blocks"
    if arguments.speculative_config is not None:
        yield "speculative_config must not be set: a draft model's pages are not checked"
    if arguments.cache_transceiver_config is not None:
        yield "cache_transceiver_config must not be set: pages that come from another server are not checked"
    if arguments.orchestrator_type == "ray" or environment.get("TLLM_DISABLE_MPI") == "1":
        yield "the ranks must be MPI's: they agree on what was found"


def _call_problem(call: Call) -> str | None:
    try:
        subject, is_method = _found(call.name)
    except (ImportError, AttributeError) as error:
        return f"{call.name} is not there: {error}"
    # Of a class, the function itself is looked at: its first parameter is self.
    given = [_NO_ARGUMENT] * (call.arguments + is_method)
    try:
        inspect.signature(subject).bind(*given, **dict.fromkeys(call.keywords, _NO_ARGUMENT))
    except (TypeError, ValueError) as error:
        return f"{call.name} cannot be called with what the page check gives it: {error}"
    return None


def _found(name: str) -> tuple[Any, bool]:
    """What a recorded name is called on this machine, and whether it is a class's."""
    parts = name.split(".")
    is_method = parts[-2][:1].isupper()
    module = ".".join(parts[: -2 if is_method else -1])
    found: Any = importlib.import_module(module)
    for attribute in parts[-2 if is_method else -1 :]:
        found = getattr(found, attribute)
    return found, is_method
