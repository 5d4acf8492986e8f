"""What somebody asks a deployment, and the request that it becomes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

__all__ = ["Message", "Parameters", "Question"]

_LONGEST = 200_000
"""Characters of a text. What the model can take is for its front to say."""
_MOST_MESSAGES = 400

Text = Annotated[str, Field(max_length=_LONGEST)]


class _Asked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Message(_Asked):
    """One thing that was said."""

    role: Literal["user", "assistant"]
    content: Text


class Parameters(_Asked):
    """How to answer; None leaves it to the front: temperature 1, every token kept, to the end of the context."""

    system: Text = ""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**64)] | None = None
    stop: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=1000)], ...], Field(max_length=16)] = ()
    """Texts before which the answer ends."""

    @property
    def fields(self) -> dict[str, Any]:
        """Those of the request that are given."""
        return self.model_dump(exclude={"system", "stop"}, exclude_none=True) | ({"stop": list(self.stop)} if self.stop else {})


class Question(_Asked):
    """A conversation that waits for its next answer."""

    messages: Annotated[tuple[Message, ...], Field(min_length=1, max_length=_MOST_MESSAGES)]
    parameters: Parameters = Parameters()

    @field_validator("messages")
    @classmethod
    def _ends_with_the_user(cls, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        if messages[-1].role != "user" or not messages[-1].content:
            raise ValueError("write something first")
        return messages

    def request(self, model: str, *, chat: bool) -> tuple[str, dict[str, Any]]:
        """The route below ``/v1`` and the body that ask this.

        A model that cannot chat continues the last text: it knows neither a system prompt nor a conversation.

        Args:
            model: what the deployment calls it.
            chat: whether it can chat.
        """
        body: dict[str, Any] = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
        body |= self.parameters.fields
        if not chat:
            return "completions", body | {"prompt": self.messages[-1].content}
        system = [{"role": "system", "content": self.parameters.system}] if self.parameters.system else []
        return "chat/completions", body | {"messages": system + [message.model_dump() for message in self.messages]}
