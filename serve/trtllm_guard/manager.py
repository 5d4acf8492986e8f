"""A subclass of whichever KV cache manager TensorRT-LLM chose: it notes each grant in a page book."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roundhouse.errors import SetupError

from .book import PageBook
from .protocols import CacheManager, Request, ScheduledBatch, real_requests

__all__ = ["guarded_manager"]


def guarded_manager(base: Any, made: Callable[[CacheManager], None]) -> Any:
    """Make the subclass.

    Args:
        base: ``resource_manager.KVCacheManager`` or a subclass, such as that for sparse attention.
        made: is given every instance.

    Returns:
        The class. Its instances have a ``page_book``, and are a :class:`.protocols.CacheManager`.
    """

    class GuardedKVCacheManager(base):  # type: ignore[misc]  # which class it is, is known at run time only
        """Pages are granted, taken back and given back here; each way is noted after TensorRT-LLM went it."""

        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            super().__init__(*arguments, **keywords)
            if self.is_vswa or min(self.max_attention_window_vec) < self.max_seq_len:
                message = f"attention windows of {self.max_attention_window_vec} tokens free pages under their request"
                raise SetupError(f"{message}; the page check does not follow that", hint="Set guard: off.")
            self.page_book = PageBook(self.blocks_in_primary_pool, self.tokens_per_block, reuse=self.enable_block_reuse)
            self.page_device = self.get_unique_primary_pool().device
            made(self)

        def prepare_resources(self, scheduled_batch: ScheduledBatch) -> None:
            super().prepare_resources(scheduled_batch)
            requests = real_requests(scheduled_batch)
            presented = self.get_batch_cache_indices([request.py_request_id for request in requests])
            self.page_book.begin_step()
            in_context = {request.py_request_id for request in scheduled_batch.context_requests}
            noted = sorted(zip(requests, presented, strict=True), key=lambda each: not self.page_book.knows(each[0]))
            for request, pages in noted:
                self.page_book.note(request, pages, in_context=request.py_request_id in in_context)

        def add_dummy_requests(
            self,
            request_ids: list[int],
            token_nums: list[int] | None = None,
            is_gen: bool = False,
            prepare_resource: bool = True,
            *arguments: Any,
            **keywords: Any,
        ) -> list[Request] | None:
            made: list[Request] | None = super().add_dummy_requests(
                request_ids, token_nums, is_gen, prepare_resource, *arguments, **keywords
            )
            # They are never compared, but they write: whoever had such a page before must not keep it.
            for request in made if made and prepare_resource else ():
                self.page_book.release(request)  # of an earlier dummy of this id
                self.page_book.note(request, self.get_cache_indices(request))
            return made

        def rewind_kv_cache(self, request: Request, rewind_len: int) -> None:
            super().rewind_kv_cache(request, rewind_len)
            self.page_book.cut(request.py_request_id, len(self.get_cache_indices(request)))

        def free_resources(self, request: Request, *arguments: Any, **keywords: Any) -> Any:
            # Somebody else may hold a page of a request that was found with a wrong one. Given back, its pages would be
            # granted a third time, or found by the next prompt. So the sequence stays, and its pages with it.
            if self.page_book.is_condemned(request.py_request_id):
                self.page_book.quarantine(request.py_request_id)
                return None
            self.page_book.release(request)
            return super().free_resources(request, *arguments, **keywords)

        def forget_prefixes(self) -> None:
            if self.enable_block_reuse:
                self.reset_reuse_state()
            self.page_book.forget_prefixes()

    return GuardedKVCacheManager
