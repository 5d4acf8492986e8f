"""What quantization did to a model: its next-token distributions against the base, on held-out text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from roundhouse.errors import BuildError

from .events import OnStep
from .kv_scales import KvScaleReport
from .texts import HELD_OUT_NAME, held_out_text

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

__all__ = ["HELD_OUT_TOKENS", "HeldOut", "Quality", "compare_logits", "judge_base", "judge_engine"]

_WINDOWS, _WINDOW_TOKENS = 4, 256
HELD_OUT_TOKENS = _WINDOWS * _WINDOW_TOKENS
"""Most tokens that quality is measured on."""


class Quality(BaseModel):
    """Engine against base on ``tokens`` tokens of held-out text, teacher forced."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    """Which text it was measured on."""
    arithmetic: str
    """What both models computed in; their weights were as stored."""
    tokens: int
    base_perplexity: float
    engine_perplexity: float
    kl: float
    """Mean KL(base ‖ engine) over positions, in nats."""
    top1_agreement: float
    """Share of positions where both put the same token first, 0 to 1."""


@dataclass(frozen=True)
class HeldOut:
    """Held-out tokens int64 [W, T] and what the base made of them, float32 [W, T, V]."""

    windows: torch.Tensor
    base_logits: torch.Tensor


def judge_base(base: PreTrainedModel, tokenizer: Any, on_step: OnStep) -> HeldOut:
    """Run the base on the held-out text, before quantizing changes it."""
    from .quantize import token_windows
    from .reference import logits

    windows = token_windows(tokenizer, held_out_text(), windows=_WINDOWS, tokens=_WINDOW_TOKENS)
    return HeldOut(windows, logits(base, windows, on_step))


def judge_engine(checkpoint: Path, kv_scales: KvScaleReport, held_out: HeldOut, on_step: OnStep, *, arithmetic: str) -> Quality:
    """Run a written checkpoint on the same text, in the same arithmetic as the base, and compare.

    Raises:
        BuildError: its logits are not finite numbers.
    """
    import torch

    from .reference import logits, plain_model

    engine_logits = logits(plain_model(checkpoint, kv_scales, getattr(torch, arithmetic)), held_out.windows, on_step)
    if not bool(torch.isfinite(engine_logits).all()):
        raise BuildError("the quantized model's logits are not finite", hint="Try FP8 or BF16 weights for this model.")
    return compare_logits(held_out.base_logits, engine_logits, held_out.windows, text=HELD_OUT_NAME, arithmetic=arithmetic)


def compare_logits(base: torch.Tensor, engine: torch.Tensor, token_ids: torch.Tensor, *, text: str, arithmetic: str) -> Quality:
    """Compare two models' logits on the same tokens.

    Args:
        base: float [W, T, V], the base model's logits over W windows of T tokens.
        engine: float [W, T, V], the quantized model's.
        token_ids: int64 [W, T], the tokens that were fed.
        text: how to name the text in the record.
        arithmetic: what the logits were computed in.
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
        arithmetic=arithmetic,
        tokens=windows * tokens,
        base_perplexity=math.exp(base_loss / predicted),
        engine_perplexity=math.exp(engine_loss / predicted),
        kl=kl / (windows * tokens),
        top1_agreement=agreeing / (windows * tokens),
    )
