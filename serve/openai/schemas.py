"""Request bodies, as OpenAI's API defines them."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from ..engine.request import Guide, SamplingParams
from .fields import Count, GenerationFields, field_error
from .forms import MOST_ANSWERS, Prompt, Prompts
from .messages import ChatMessage
from .tools.definitions import NamedTool, Tool, ToolChoice

__all__ = ["ChatMessage", "ChatRequest", "CompletionRequest", "Prompt"]

_REST_OF_CONTEXT = 2**31 - 1
_COMPLETION_TOKENS = 16

MostLogprobs = Annotated[int, Field(ge=0, le=20, strict=True)]


class CompletionRequest(GenerationFields):
    """``POST /v1/completions``: prompts, each as text or as token ids."""

    prompt: Prompts
    best_of: int | None = None
    echo: bool | None = None
    logprobs: MostLogprobs | None = None

    @model_validator(mode="after")
    def _answers_fit(self) -> Self:
        if self.best_of is not None and self.best_of != self.answers:
            message = f"best_of is {self.best_of}; only as many as n, which is {self.answers}, can be drawn here"
            raise field_error("best_of", message)
        if self.echo and self.logprobs is not None:
            raise field_error("echo", "echo with logprobs is not supported here: prompts have no log-probabilities")
        if len(self.prompts) * self.answers > MOST_ANSWERS:
            message = f"prompts times n is {len(self.prompts) * self.answers}; at most {MOST_ANSWERS} are answered at once"
            raise field_error("n", message)
        return self

    @property
    def prompts(self) -> list[Prompt]:
        """The prompts, one or many."""
        if isinstance(self.prompt, list) and self.prompt and not isinstance(self.prompt[0], int):
            return list(self.prompt)
        return [self.prompt]  # type: ignore[list-item]  # the branch above took the nested lists

    @property
    def sampling(self) -> SamplingParams:
        """How to sample; 16 tokens unless asked otherwise, as OpenAI does."""
        most = _COMPLETION_TOKENS if self.max_tokens is None else self.max_tokens
        return self.sampling_params(max_tokens=most, logprobs=self.logprobs, guide=self.guide)


class ChatRequest(GenerationFields):
    """``POST /v1/chat/completions``."""

    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: MostLogprobs | None = None
    tools: Annotated[list[Tool], Field(max_length=MOST_ANSWERS)] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None

    @model_validator(mode="after")
    def _choice_is_there(self) -> Self:
        if self.top_logprobs and not self.logprobs:
            raise field_error("top_logprobs", "top_logprobs needs logprobs: true")
        names = [tool.function.name for tool in self.tools or ()]
        if twice := [name for name in names if names.count(name) > 1]:
            raise field_error("tools", f"two tools are called {twice[0]!r}")
        if isinstance(self.tool_choice, NamedTool) and self.tool_choice.function.name not in names:
            name = self.tool_choice.function.name
            raise field_error("tool_choice", f"tool_choice names {name!r}, which is not among the tools")
        if self.tool_choice == "required" and not names:
            raise field_error("tool_choice", "tool_choice is required, but there are no tools")
        return self

    def field_behind(self, param: str | None) -> str | None:
        """As for every request; the prompt is made of messages, and with tools the guide is made of their parameters."""
        if param == "prompt":
            return "messages"
        if param == "guide" and self.usable_tools:
            only = len(self.usable_tools) == 1 and self.guide_of_format is None
            return "tools[0].function.parameters" if only else "tools"
        return super().field_behind(param)

    @property
    def usable_tools(self) -> list[Tool]:
        """The tools that the answer may call."""
        return [] if self.tool_choice == "none" else list(self.tools or ())

    def sampling(self, guide: Guide | None) -> SamplingParams:
        """How to sample; up to the end of the context unless asked otherwise, as OpenAI does.

        Args:
            guide: what the text must look like.
        """
        given = self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens
        most = _REST_OF_CONTEXT if given is None else given
        return self.sampling_params(max_tokens=most, logprobs=(self.top_logprobs or 0) if self.logprobs else None, guide=guide)
