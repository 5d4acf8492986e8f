"""What the page check uses of TensorRT-LLM's PyTorch backend, by the names in ``build/trtllm/upstream.json``.

Only what is called or read here; a test holds these against the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    from .book import PageBook

__all__ = [
    "CacheManager",
    "Communicator",
    "Executor",
    "Ranks",
    "Request",
    "ScheduledBatch",
    "context_end",
    "real_requests",
]


class Request(Protocol):
    """``llm_request.LlmRequest``: properties of the C++ class, and those that Python adds (``py_…``)."""

    py_request_id: int
    py_draft_tokens: Sequence[int] | None
    is_dummy_request: bool
    """Warm-up and padding: nobody reads what such a request computes."""
    prepopulated_prompt_len: int
    """Tokens of the prompt that were found in the reuse tree."""
    context_current_position: int
    context_chunk_size: int
    max_beam_num_tokens: int
    lora_task_id: int | None
    cache_salt_id: int | None

    def get_tokens(self, beam: int) -> Sequence[int]:
        """Prompt and answer so far."""
        ...


class ScheduledBatch(Protocol):
    """``scheduler.ScheduledRequests``: what runs in a step."""

    context_requests: list[Request]
    generation_requests: list[Request]

    def all_requests(self) -> list[Request]:
        """Context requests first, then those that generate."""
        ...


class Ranks(Protocol):
    """``communicator.Distributed``."""

    tp_size: int

    def tp_allgather(self, obj: object) -> list[Any]:
        """What each tensor-parallel rank gave, in the order of ranks."""
        ...


class Communicator(Protocol):
    """mpi4py's, of all ranks of the engine."""

    rank: int
    size: int

    def isend(self, obj: object, dest: int, tag: int) -> Any:
        """Send without waiting; the answer's ``wait()`` does."""
        ...

    def iprobe(self, source: int, tag: int) -> bool:
        """Whether a message is there."""
        ...

    def recv(self, *, source: int, tag: int) -> Any:
        """Take a message."""
        ...


class CacheManager(Protocol):
    """``resource_manager.KVCacheManager``, with what our subclass adds: a book of its pages."""

    page_book: PageBook
    page_device: torch.device
    """Where the pages are."""

    def get_batch_cache_indices(self, request_ids: list[int]) -> list[list[int]]:
        """The blocks of each request, by column."""
        ...

    def get_unique_primary_pool(self) -> torch.Tensor:
        """All KV pages."""
        ...

    def forget_prefixes(self) -> None:
        """Ours: nothing that was computed so far may be found by another prompt."""
        ...


class Executor(Protocol):
    """``py_executor.PyExecutor``."""

    kv_cache_manager: CacheManager
    dist: Ranks

    def _handle_errors(self, error_msg: str | None = None, *, requests: list[Request] | None = None) -> None:
        """Answer these requests with an error, and free what they hold."""
        ...


def context_end(request: Request) -> int:
    """How many tokens of its prompt are computed after the step that is scheduled; a chunk may be said to be longer."""
    return min(request.context_current_position + request.context_chunk_size, request.max_beam_num_tokens)


def real_requests(batch: ScheduledBatch) -> list[Request]:
    """The requests of a batch that somebody sent, in its order."""
    return [request for request in batch.all_requests() if not request.is_dummy_request]
