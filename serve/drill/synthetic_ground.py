"""Grounds without an engine: the real loop, pool, scheduler and guard over pages that know their owners."""

from __future__ import annotations

from functools import cache
from random import Random

from tokenizers import Tokenizer, models

from roundhouse.build.planner.kv_budget import KvBudget

from ..engine.tokenizer import EngineTokenizer
from ..settings import EngineSettings
from .episode import Ground
from .owned_pages import VOCAB, OwnedPages

__all__ = ["synthetic_ground"]


def synthetic_ground(draw: Random) -> Ground:
    """A small engine, every size of it drawn. Its pool is too small for its clients: pages change hands all the time."""
    page_tokens, pages = draw.choice((1, 2, 4, 8)), draw.randint(24, 128)
    longest = min(96, pages * page_tokens // 2)
    settings = EngineSettings(
        page_tokens=page_tokens,
        max_batch_size=draw.randint(2, 16),
        max_seq_len=longest + 1,
        max_num_tokens=draw.randint(16, 128),
        guard="tags",
        prefix_reuse=draw.random() < 0.8,
        kv=KvBudget(
            pages=pages,
            group_pages=(pages,),
            page_tokens=page_tokens,
            bytes=0,
            tokens=pages * page_tokens,
            at_context=None,
            binding_limit="drill",
        ),
    )
    return Ground(settings, OwnedPages(pages, page_tokens), _tokenizer(), VOCAB, longest, faults_a_step=0.1, steps=100)


@cache
def _tokenizer() -> EngineTokenizer:
    """One word a token; nobody reads the text."""
    return EngineTokenizer(Tokenizer(models.WordLevel({f"w{i}": i for i in range(VOCAB)}, unk_token="w0")), frozenset({0}))
