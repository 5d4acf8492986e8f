"""What is asked while speed is measured."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["Workload"]


class Workload(BaseModel):
    """Requests, as a driver makes them. Prompts are random and new for each point, unless they are from a file.

    Every length is in tokens. Answers have exactly the length that was asked for, whatever they say.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str = "fixed"
    kind: Literal["synthetic", "conversations"] = "synthetic"
    input_tokens: int = Field(default=128, ge=1)
    """Of each prompt, the shared prefix included; ignored for conversations."""
    output_tokens: int = Field(default=64, ge=1)
    input_spread: int = Field(default=0, ge=0)
    """Standard deviation of the prompt's length; 0: all alike."""
    output_spread: int = Field(default=0, ge=0)
    prefix_tokens: int = Field(default=0, ge=0)
    """Of these, tokens with which prompts begin alike."""
    prefixes: int = Field(default=1, ge=1)
    """How many such beginnings there are."""
    cancel_share: float = Field(default=0.0, ge=0, lt=1)
    """Which part of the requests is cancelled by the client."""
    cancel_after_s: float = Field(default=1.0, gt=0, le=86_400)
    """Seconds after which these are cancelled."""
    requests_each: int = Field(default=4, ge=1)
    """Requests of a point, as a multiple of its concurrency."""
    least_requests: int = Field(default=8, ge=1)
    """But no fewer than so many."""
    file: str | None = None
    """Of conversations: the path of the file."""
    file_sha256: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.prefix_tokens >= self.input_tokens and self.prefix_tokens:
            raise ValueError("prefix_tokens must be fewer than input_tokens: prompts would be nothing else")
        if (self.kind == "conversations") != (self.file is not None):
            raise ValueError("a file belongs to conversations, and to nothing else")
        return self

    def requests(self, concurrency: int) -> int:
        """Requests of a point."""
        return max(self.requests_each * concurrency, self.least_requests)

    @property
    def key(self) -> str:
        """8 hex digits: what differs asks something else, whatever it is called."""
        content = self.model_dump(mode="json", exclude={"name", "file"})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def words(self) -> str:
        """In a few words, for tables: ``128 in, 64 out``."""
        if self.kind == "conversations":
            told = f"conversations of {Path(self.file or '').name}, {_length(self.output_tokens, self.output_spread)} out"
        else:
            told = f"{_length(self.input_tokens, self.input_spread)} in, {_length(self.output_tokens, self.output_spread)} out"
        if self.prefix_tokens:
            told += f", {self.prefix_tokens} shared"
        if self.cancel_share:
            told += f", {self.cancel_share:.0%} cancelled"
        return told


def _length(tokens: int, spread: int) -> str:
    return f"{tokens}±{spread}" if spread else str(tokens)
