"""In-memory twins of what the page check meets in TensorRT-LLM's PyTorch backend: blocks, manager, requests, executor, ranks.

They do what docs/tensorrt-llm.md says of the originals, in the same order and under the same names, and nothing of them is
TensorRT-LLM. Pages hold token ids where a model keeps keys and values, and the next token depends on everything that is read
back from them: whoever reads a wrong page answers wrong. :func:`expected_answer` is what must come out.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import torch

__all__ = [
    "PAGE_TOKENS",
    "Blocks",
    "Distributed",
    "KVCacheManager",
    "KvCacheConnectorManager",
    "LlmRequest",
    "PyExecutor",
    "ScheduledRequests",
    "expected_answer",
]

PAGE_TOKENS = 4
_VOCAB = 5
"""Few words, so that prompts often begin alike."""


def expected_answer(prompt: Sequence[int], count: int) -> list[int]:
    """What a model answers that reads what was written."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(_next_token(tokens))
    return tokens[len(prompt) :]


def _next_token(tokens: Sequence[int]) -> int:
    return crc32(np.asarray(tokens, dtype=np.int64).tobytes()) % _VOCAB


class LlmRequest:
    """A request: what the executor and the check read of it."""

    def __init__(
        self, request_id: int, prompt: Sequence[int], max_new_tokens: int, *, salt: int | None = None, drafts: int = 0
    ):
        self.py_request_id = self.request_id = request_id
        self.prompt = list(prompt)
        self.tokens = list(prompt)
        self.orig_prompt_len = self.prompt_len = len(prompt)
        self.max_new_tokens = max_new_tokens
        self.py_draft_tokens = [0] * drafts
        self.py_rewind_len = drafts
        self.is_dummy_request = False
        self.lora_task_id = None
        self.cache_salt_id = salt
        self.restart()

    def restart(self) -> None:
        self.prompt_len = len(self.tokens)
        self.prepopulated_prompt_len = self.context_current_position = 0
        self.context_chunk_size = self.prompt_len

    def get_tokens(self, beam: int) -> list[int]:
        return list(self.tokens)

    @property
    def max_beam_num_tokens(self) -> int:
        return len(self.tokens)

    @property
    def in_context(self) -> bool:
        return self.context_current_position < self.prompt_len

    @property
    def answer(self) -> list[int]:
        return self.tokens[self.orig_prompt_len :]


class ScheduledRequests:
    """A step's batch."""

    def __init__(self) -> None:
        self.context_requests: list[LlmRequest] = []
        self.generation_requests: list[LlmRequest] = []
        self.paused_requests: list[LlmRequest] = []

    @property
    def batch_size(self) -> int:
        return len(self.context_requests) + len(self.generation_requests)

    def all_requests(self) -> list[LlmRequest]:
        return self.context_requests + self.generation_requests


class CopiedUnseenError(Exception):
    """The manager copies from a block that its tree has wrong: what the check cannot see (docs/page-tags.md)."""


class _Block:
    def __init__(self, block_id: int) -> None:
        self.id = block_id
        self.refs = 0
        self.key: tuple[Any, ...] | None = None
        self.previous: _Block | None = None
        self.next: dict[tuple[Any, ...], _Block] = {}

    @property
    def full(self) -> bool:
        return self.key is not None and len(self.key[1]) == PAGE_TOKENS


class Blocks:
    """The C++ manager: blocks with reference counts, a queue of free ones, and the tree that finds them by their tokens."""

    def __init__(self, pages: int, *, reuse: bool, early: bool) -> None:
        self.content = np.full((pages, PAGE_TOKENS), -1, dtype=np.int64)
        self.all = [_Block(number) for number in range(pages)]
        self.free = deque(self.all)
        self.reuse = reuse
        self.early = early
        """Whether the tree is given what is not computed yet, as TensorRT-LLM's source reads."""
        self.sequences: dict[int, list[_Block]] = {}
        self.lengths: dict[int, int] = {}
        self.root = _Block(-1)

    def add_sequence(self, request_id: int, length: int, request: LlmRequest) -> None:
        assert request_id not in self.sequences
        sequence = self.sequences[request_id] = []
        self.lengths[request_id] = length
        keys = _keys(request, length - 1) if self.reuse else []
        matched, node = 0, self.root if self.reuse else None
        for column in range(-(-length // PAGE_TOKENS)):
            key = keys[column] if column < len(keys) else None
            found = node.next.get(key) if node is not None and key is not None else None
            if found is None:
                node, block = None, self._take()
            elif found.full:
                node, block = found, found
                self._claim(block)
            else:
                node = None
                if found.refs or found.next:
                    if found.key != key:
                        raise CopiedUnseenError
                    block = self._take()
                    self.content[block.id] = self.content[found.id]
                else:
                    block = found
                    self._detach(block)
                    self._claim(block)
            if found is not None and key is not None:
                matched += len(key[1])
            block.refs += 1
            sequence.append(block)
        request.prepopulated_prompt_len = matched
        if matched:
            end = matched + request.context_chunk_size
            if end < request.prompt_len:
                end = end // PAGE_TOKENS * PAGE_TOKENS
            request.context_current_position = matched
            request.context_chunk_size = min(end, request.prompt_len) - matched

    def add_token(self, request_id: int) -> None:
        self.lengths[request_id] += 1
        if (self.lengths[request_id] - 1) % PAGE_TOKENS == 0:
            block = self._take()
            block.refs += 1
            self.sequences[request_id].append(block)

    def rewind_kv_cache(self, request_id: int, count: int) -> None:
        for _ in range(count):
            self.lengths[request_id] -= 1
            if self.lengths[request_id] % PAGE_TOKENS == 0:
                self._put(self.sequences[request_id].pop())

    def store_context_blocks(self, request: LlmRequest) -> None:
        if self.reuse:
            computed = min(request.context_current_position, len(request.tokens) - 1)
            if self.early:
                computed = len(request.tokens) - 1
            self._store(request, self.sequences[request.py_request_id], computed // PAGE_TOKENS * PAGE_TOKENS)

    def remove_sequence(self, request_id: int, request: LlmRequest) -> None:
        sequence = self.sequences.pop(request_id, [])
        if self.reuse and sequence and not request.is_dummy_request:
            left_early = request.in_context and not self.early
            computed = request.context_current_position if left_early else len(request.tokens) - 1
            self._store(request, sequence, computed)
        for block in reversed(sequence):
            self._put(block)

    def reset_reuse_state(self) -> None:
        self.root = _Block(-1)

    def _store(self, request: LlmRequest, sequence: list[_Block], tokens: int) -> None:
        node, matching = self.root, True
        for key, block in zip(_keys(request, tokens), sequence, strict=False):
            if matching and key in node.next:
                node = node.next[key]
                continue
            matching = False
            block.key, block.previous = key, node
            node.next.setdefault(key, block)
            node = block

    def _take(self) -> _Block:
        block = self.free.popleft()
        self._free_children(block)
        return block

    def _free_children(self, block: _Block) -> None:
        for child in list(block.next.values()):
            self._free_children(child)
        self._detach(block)
        block.next.clear()

    def _detach(self, block: _Block) -> None:
        if block.previous is not None and block.key is not None and block.previous.next.get(block.key) is block:
            del block.previous.next[block.key]
        block.previous = None

    def _claim(self, block: _Block) -> None:
        if not block.refs and block in self.free:
            self.free.remove(block)

    def _put(self, block: _Block) -> None:
        block.refs = max(block.refs - 1, 0)
        if not block.refs:
            self.free.append(block)


def _keys(request: LlmRequest, count: int) -> list[tuple[Any, ...]]:
    tokens = request.tokens[:count]
    kind = (request.lora_task_id, request.cache_salt_id)
    return [(kind, tuple(tokens[begin : begin + PAGE_TOKENS])) for begin in range(0, count, PAGE_TOKENS)]


class KVCacheManager:
    """The Python manager around the blocks."""

    def __init__(self, pages: int = 32, *, reuse: bool = True, early: bool = False, window: int = 1000) -> None:
        self.impl = Blocks(pages, reuse=reuse, early=early)
        self.tokens_per_block = PAGE_TOKENS
        self.blocks_in_primary_pool = pages
        self.enable_block_reuse = reuse
        self.max_seq_len = 1000
        self.max_attention_window_vec = [window]
        self.is_vswa = False

    def prepare_resources(self, scheduled_batch: ScheduledRequests) -> None:
        for request in scheduled_batch.context_requests:
            if request.py_request_id not in self.impl.sequences:
                self.impl.add_sequence(request.py_request_id, request.prompt_len, request)
        for request in scheduled_batch.generation_requests:
            for _ in range(1 + len(request.py_draft_tokens)):
                self.impl.add_token(request.py_request_id)

    def add_dummy_requests(
        self,
        request_ids: list[int],
        token_nums: list[int] | None = None,
        is_gen: bool = False,
        prepare_resource: bool = True,
        max_num_draft_tokens: int = 0,
        use_mrope: bool = False,
        max_beam_width: int = 1,
        num_extra_decoding_steps: int = 0,
    ) -> list[LlmRequest] | None:
        lengths = token_nums or [1] * len(request_ids)
        made = [LlmRequest(number, [1] * length, 1) for number, length in zip(request_ids, lengths, strict=True)]
        for request in made:
            request.is_dummy_request = True
            if prepare_resource:
                self.impl.add_sequence(request.py_request_id, request.prompt_len, request)
        return made if self.impl.free else None

    def update_resources(
        self, scheduled_batch: ScheduledRequests, attn_metadata: object = None, kv_cache_dtype_byte_size: float | None = None
    ) -> None:
        for request in scheduled_batch.generation_requests:
            if request.py_rewind_len and request.py_request_id in self.impl.sequences:
                self.rewind_kv_cache(request, request.py_rewind_len)
        for request in scheduled_batch.context_requests:
            if request.py_request_id in self.impl.sequences:
                self.impl.store_context_blocks(request)

    def free_resources(self, request: LlmRequest, pin_on_release: bool = False) -> None:
        self.impl.remove_sequence(request.py_request_id, request)

    def rewind_kv_cache(self, request: LlmRequest, rewind_len: int) -> None:
        self.impl.rewind_kv_cache(request.py_request_id, rewind_len)

    def get_cache_indices(self, request: LlmRequest, window_size: int | None = None) -> list[int]:
        return [block.id for block in self.impl.sequences[request.py_request_id]]

    def get_batch_cache_indices(self, request_ids: list[int], layer_idx: int | None = None) -> list[list[int]]:
        return [[block.id for block in self.impl.sequences[request_id]] for request_id in request_ids]

    def get_unique_primary_pool(self) -> torch.Tensor:
        return torch.from_numpy(self.impl.content)

    def reset_reuse_state(self) -> None:
        self.impl.reset_reuse_state()


class KvCacheConnectorManager:
    """Upstream's own side of the KV connector."""

    def __init__(self, worker: Any, scheduler: Any) -> None:
        self.worker = worker
        self.scheduler = scheduler
        self.external_loads: dict[int, int] = {}
        """What each request that began was told, until the next output is built."""
        self.copied: dict[int, list[int]] = {}

    def get_num_new_matched_tokens(self, request: LlmRequest, num_computed_tokens: int) -> int:
        count = self.scheduler.get_num_new_matched_tokens(request, num_computed_tokens)[0] if self.scheduler else 0
        self.external_loads[request.request_id] = count
        return int(count)

    def build_scheduler_output(self, scheduled_batch: ScheduledRequests, kv_cache_manager: KVCacheManager) -> None:
        for request in (*scheduled_batch.context_requests, *scheduled_batch.generation_requests):
            self.copied[request.request_id] = request.get_tokens(0)
        self.external_loads = {}

    def handle_metadata(self) -> None:
        self.worker.bind_connector_meta(self.scheduler.build_connector_meta(None) if self.scheduler else None)

    def request_finished(self, req: LlmRequest, cache_block_ids: list[int]) -> bool:
        return bool(self.scheduler.request_finished(req, cache_block_ids)) if self.scheduler else False


class Distributed:
    """Ranks that are threads of this process.

    Args:
        rank: this one.
        shared: what all ranks of an engine were given, from :meth:`of`.
    """

    def __init__(self, rank: int, shared: tuple[threading.Barrier, list[Any]]) -> None:
        self.rank = rank
        self._barrier, self._told = shared
        self.tp_size = len(self._told)
        self.gathered = 0

    @staticmethod
    def of(size: int, *, timeout_s: float = 30.0) -> list[Distributed]:
        shared = (threading.Barrier(size, timeout=timeout_s), [None] * size)
        return [Distributed(rank, shared) for rank in range(size)]

    def tp_allgather(self, obj: Any) -> list[Any]:
        self.gathered += 1
        self._told[self.rank] = obj
        self._barrier.wait()
        told = list(self._told)
        self._barrier.wait()
        return told


class PyExecutor:
    """The loop without overlap; :meth:`step` is one of its rounds."""

    def __init__(
        self,
        manager: KVCacheManager,
        connector: KvCacheConnectorManager,
        dist: Distributed,
        *,
        batch: int = 8,
        chunk: int = 1000,
    ) -> None:
        self.kv_cache_manager = manager
        self.kv_connector_manager = connector
        self.dist = dist
        self.active_requests: list[LlmRequest] = []
        self.answers: dict[int, list[int]] = {}
        self.errors: dict[int, str] = {}
        self.steps_run = 0
        self.between: Callable[[ScheduledRequests], None] = lambda batch: None
        """Runs after the grants and before the check."""
        self._batch, self._chunk = batch, chunk

    def step(self) -> None:
        batch = self._schedule()
        if not batch.batch_size:
            return
        beginning = [each for each in batch.context_requests if each.py_request_id not in self.kv_cache_manager.impl.sequences]
        self.kv_cache_manager.prepare_resources(batch)
        for request in beginning:
            self.kv_connector_manager.get_num_new_matched_tokens(request, request.prepopulated_prompt_len)
        self.kv_connector_manager.build_scheduler_output(batch, self.kv_cache_manager)
        self.between(batch)
        self._kv_connector_start_batch(batch)
        if not batch.batch_size:
            return
        outputs = self._forward_step(batch)
        for request, token in zip(batch.all_requests(), outputs, strict=True):
            request.context_current_position += request.context_chunk_size if request.in_context else 0
            if not request.in_context:
                request.tokens.append(token)
        finished = [request for request in batch.all_requests() if len(request.answer) >= request.max_new_tokens]
        self.kv_cache_manager.update_resources(batch, None, 1.0)
        for request in finished:
            self.answers[request.py_request_id] = request.answer
            self._leave(request)

    def cancel(self, request: LlmRequest) -> None:
        self._leave(request)

    def pause(self, request: LlmRequest) -> None:
        if request.py_request_id in self.kv_cache_manager.impl.sequences:
            self._terminate_request(request)
        request.restart()

    def _schedule(self) -> ScheduledRequests:
        """First come, first served; a request begins only when all pages that it may need are free."""
        batch = ScheduledRequests()
        blocks = self.kv_cache_manager.impl
        free = len(blocks.free)
        for running, request in enumerate(self.active_requests):
            begun = request.py_request_id in blocks.sequences
            most = request.orig_prompt_len + request.max_new_tokens + len(request.py_draft_tokens) + 1
            free -= -(-most // PAGE_TOKENS) - len(blocks.sequences.get(request.py_request_id, []))
            if running == self._batch or (not begun and free < 0):
                break
            if request.in_context:
                left = request.prompt_len - request.context_current_position
                request.context_chunk_size = min(left, self._chunk)
                batch.context_requests.append(request)
            else:
                batch.generation_requests.append(request)
        return batch

    def _kv_connector_start_batch(self, scheduled_batch: ScheduledRequests) -> None:
        self.kv_connector_manager.handle_metadata()
        self.kv_connector_manager.worker.start_load_kv(None)

    def _forward_step(
        self,
        scheduled_requests: ScheduledRequests,
        new_tensors_device: object = None,
        num_accepted_tokens_device: object = None,
    ) -> list[int]:
        """Write tokens into pages, and answer from what all of a request's pages hold.

        All prompts of a step are written before any of them is attended to, in every layer; answers come after them.
        """
        self.steps_run += 1
        batch = scheduled_requests
        return [*self._attended(batch.context_requests), *self._attended(batch.generation_requests)]

    def _attended(self, requests: Sequence[LlmRequest]) -> list[int]:
        manager = self.kv_cache_manager
        pages = manager.impl.content
        cells = []
        for request in requests:
            table = manager.get_cache_indices(request)
            begin = request.context_current_position if request.in_context else len(request.tokens) - 1
            end = begin + request.context_chunk_size if request.in_context else len(request.tokens)
            cells.append([(table[position // PAGE_TOKENS], position % PAGE_TOKENS) for position in range(end)])
            for cell, token in zip(cells[-1][begin:], request.tokens[begin:end], strict=True):
                pages[cell] = token
        return [_next_token([int(pages[cell]) for cell in row]) for row in cells]

    def _handle_errors(self, error_msg: str | None = None, *, requests: list[LlmRequest] | None = None) -> None:
        for request in list(self.active_requests) if requests is None else requests:
            self.errors[request.py_request_id] = error_msg or "error"
            self._leave(request)

    def _leave(self, request: LlmRequest) -> None:
        self.active_requests.remove(request)
        if request.py_request_id in self.kv_cache_manager.impl.sequences:
            self._terminate_request(request)

    def _terminate_request(self, request: LlmRequest) -> None:
        self.kv_connector_manager.request_finished(request, self.kv_cache_manager.get_cache_indices(request))
        self.kv_cache_manager.free_resources(request)
