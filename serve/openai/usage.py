"""Tokens of an answer, over all prompts and choices."""

from __future__ import annotations

from typing import Any

from .triton_client import Piece

__all__ = ["Usage"]


class Usage:
    """Counts from pieces; each piece says how many there are so far."""

    def __init__(self) -> None:
        self._prompts: dict[int, Piece] = {}
        self._answers: dict[tuple[int, int], int] = {}

    def push(self, prompt: int, piece: Piece) -> None:
        """Take a piece of the answer to a prompt. A prompt with several answers is computed, and counted, once."""
        if piece.index == 0 or prompt not in self._prompts:
            self._prompts[prompt] = piece
        self._answers[prompt, piece.index] = piece.completion_tokens

    def as_dict(self) -> dict[str, Any]:
        """In OpenAI's form."""
        prompt = sum(piece.prompt_tokens for piece in self._prompts.values())
        completion = sum(self._answers.values())
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": sum(piece.cached_tokens for piece in self._prompts.values())},
        }
