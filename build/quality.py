"""What quantization did to a model: its next-token distributions against the base, on held-out text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    import torch

__all__ = ["Quality", "compare_logits"]


class Quality(BaseModel):
    """Engine against base on ``tokens`` tokens of held-out text, teacher forced."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    """Which text it was measured on."""
    tokens: int
    base_perplexity: float
    engine_perplexity: float
    kl: float
    """Mean KL(base ‖ engine) over positions, in nats."""
    top1_agreement: float
    """Share of positions where both put the same token first, 0 to 1."""


def compare_logits(base: torch.Tensor, engine: torch.Tensor, token_ids: torch.Tensor, *, text: str) -> Quality:
    """Compare two models' logits on the same tokens.

    Args:
        base: float [W, T, V], the base model's logits over W windows of T tokens.
        engine: float [W, T, V], the quantized model's.
        token_ids: int64 [W, T], the tokens that were fed.
        text: how to name the text in the record.
    """
    kl = agreeing = base_loss = engine_loss = 0.0
    # One window at a time: float64 sums, and no second copy of logits as large as the vocabulary.
    for base_window, engine_window, ids in zip(base, engine, token_ids, strict=True):
        base_log, engine_log = base_window.float().log_softmax(-1), engine_window.float().log_softmax(-1)
        kl += float((base_log.exp() * (base_log - engine_log)).sum())
        agreeing += float((base_log.argmax(-1) == engine_log.argmax(-1)).sum())
        targets = ids[1:, None]
        base_loss -= float(base_log[:-1].gather(-1, targets).sum())
        engine_loss -= float(engine_log[:-1].gather(-1, targets).sum())
    windows, tokens = token_ids.shape
    predicted = windows * (tokens - 1)
    return Quality(
        text=text,
        tokens=windows * tokens,
        base_perplexity=math.exp(base_loss / predicted),
        engine_perplexity=math.exp(engine_loss / predicted),
        kl=kl / (windows * tokens),
        top1_agreement=agreeing / (windows * tokens),
    )
