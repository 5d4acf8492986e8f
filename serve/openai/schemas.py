"""Request bodies, as OpenAI's API defines them.

A field that would change the answer and is not supported is an error that names it, never silently
dropped. A field whose given value changes nothing (``n: 1``, ``tools: []``) is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from ..engine.request import SamplingParams

__all__ = ["ChatMessage", "ChatRequest", "CompletionRequest", "StreamOptions"]

_WITHOUT_EFFECT = frozenset(
    {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "parallel_tool_calls"}
)
"""Fields that never change the text of an answer here."""

_NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "echo": (False,),
    "suffix": ("",),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
}
"""Fields that are not supported, with the values (beside null) that ask for nothing."""

_REST_OF_CONTEXT = 2**31 - 1
_COMPLETION_TOKENS = 16

TokenId = Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)]


class StreamOptions(BaseModel):
    """``include_usage`` asks for one more chunk at the end, with the usage and no choices."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    include_usage: bool = False


class _Generation(BaseModel):
    """What both endpoints take. ``top_k`` and ``ignore_eos`` are additions to OpenAI's fields."""

    model_config = ConfigDict(frozen=True, extra="allow")

    model: str
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: Count | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: Count | None = None
    seed: int | None = Field(default=None, ge=0, lt=2**64, strict=True)
    stop: Annotated[str, StringConstraints(min_length=1)] | list[Annotated[str, StringConstraints(min_length=1)]] | None = None
    ignore_eos: bool = False

    @model_validator(mode="after")
    def _refuse_unsupported(self) -> Self:
        refused = [name for name, value in (self.model_extra or {}).items() if not _changes_nothing(name, value)]
        if refused:
            raise ValueError(f"not supported here: {', '.join(sorted(refused))}")
        return self

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        return self.stream_options is not None and self.stream_options.include_usage

    def _sampling(self, max_tokens: int) -> SamplingParams:
        """OpenAI's defaults: temperature 1, every token kept."""
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        return SamplingParams(
            max_tokens=max_tokens,
            temperature=1.0 if self.temperature is None else self.temperature,
            top_p=1.0 if self.top_p is None else self.top_p,
            top_k=self.top_k or 0,
            seed=self.seed,
            stop=stop,
            ignore_eos=self.ignore_eos,
        )


class CompletionRequest(_Generation):
    """``POST /v1/completions``: one prompt, as text or as token ids."""

    prompt: (
        str
        | list[TokenId]
        | Annotated[list[str], Field(min_length=1, max_length=1)]
        | Annotated[list[list[TokenId]], Field(min_length=1, max_length=1)]
    )

    @property
    def one_prompt(self) -> str | list[int]:
        """The prompt, out of the list of one that clients may wrap it in."""
        if isinstance(self.prompt, list) and self.prompt and not isinstance(self.prompt[0], int):
            return self.prompt[0]
        return self.prompt  # type: ignore[return-value]  # the branch above took the nested lists

    @property
    def sampling(self) -> SamplingParams:
        """How to sample; 16 tokens unless asked otherwise, as OpenAI does."""
        return self._sampling(_COMPLETION_TOKENS if self.max_tokens is None else self.max_tokens)


class TextPart(BaseModel):
    """One piece of a message's content. Only text is understood."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """One turn of a conversation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: str
    content: str | list[TextPart]
    name: str | None = None

    def for_template(self) -> dict[str, Any]:
        """The message as chat templates expect it: content as one string."""
        text = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return {"role": self.role, "content": text} | ({"name": self.name} if self.name else {})


class ChatRequest(_Generation):
    """``POST /v1/chat/completions``."""

    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_completion_tokens: Count | None = None

    @property
    def sampling(self) -> SamplingParams:
        """How to sample; up to the end of the context unless asked otherwise, as OpenAI does."""
        given = self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens
        return self._sampling(_REST_OF_CONTEXT if given is None else given)


def _changes_nothing(name: str, value: object) -> bool:
    return name in _WITHOUT_EFFECT or (name in _NEUTRAL and (value is None or value in _NEUTRAL[name]))
