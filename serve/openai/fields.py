"""The fields of a request that both endpoints take.

A field that would change the answer and is not supported is an error that names it, never silently dropped. A field
whose given value changes nothing (``suffix: ""``, ``functions: []``) is accepted.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ..engine.request import Guide, SamplingParams
from .forms import MOST_ANSWERS, StopStrings, TokenId
from .response_format import ResponseFormat, guide_of
from .text import Text

__all__ = ["Count", "GenerationFields", "StreamOptions", "field_error"]

_WITHOUT_EFFECT = frozenset(
    {
        "user",
        "metadata",
        "store",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
    }
)
"""Fields that never change the text of an answer here."""

_NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "suffix": ("",),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "modalities": (["text"],),
    "reasoning_effort": (),
    "verbosity": (),
    "prediction": (),
    "audio": (),
    "web_search_options": (),
}
"""Fields that are not supported, with the values (beside null) that ask for nothing."""

Count = Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)]
Penalty = Annotated[float, Field(ge=-2, le=2)]
Bias = Annotated[float, Field(ge=-100, le=100)]


class StreamOptions(BaseModel):
    """``include_usage`` asks for one more chunk at the end, with the usage and no choices.

    ``include_obfuscation``, which hides how long pieces are, is accepted and not followed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    include_usage: bool = False
    include_obfuscation: bool | None = None


class GenerationFields(BaseModel):
    """What both endpoints take. The fields after ``response_format`` are additions to OpenAI's."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Count | None = None
    n: Annotated[int, Field(ge=1, le=MOST_ANSWERS, strict=True)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**64, strict=True)] | None = None
    stop: StopStrings | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: dict[Annotated[int, Field(ge=0, le=2**31 - 1)], Bias] | None = None
    response_format: ResponseFormat | None = None

    guided_regex: Annotated[Text, StringConstraints(min_length=1)] | None = None
    top_k: Count | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0)] | None = None
    min_tokens: Count | None = None
    ignore_eos: bool | None = None
    stop_token_ids: list[TokenId] | None = None
    priority: Annotated[int, Field(ge=-(2**31), le=2**31 - 1, strict=True)] | None = None
    cache_salt: Text | None = None
    deadline_s: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _can_be_followed(self) -> Self:
        refused = sorted(name for name, value in (self.model_extra or {}).items() if not _changes_nothing(name, value))
        if refused:
            nearest = difflib.get_close_matches(refused[0], type(self).model_fields, n=1)
            guess = f" (did you mean {nearest[0]!r}?)" if nearest and refused[0] not in _NEUTRAL else ""
            raise field_error(refused[0], f"not supported here: {', '.join(refused)}{guess}")
        if self.guided_regex is not None and self.guide_of_format is not None:
            raise field_error("guided_regex", "guided_regex and response_format exclude each other")
        return self

    @property
    def streaming(self) -> bool:
        """Whether the answer is to come piece by piece."""
        return self.stream is True

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    def answers(self) -> int:
        """How many answers to draw for each prompt."""
        return self.n or 1

    @property
    def guide_of_format(self) -> Guide | None:
        """What ``response_format`` holds the text to."""
        return guide_of(self.response_format)

    @property
    def guide(self) -> Guide | None:
        """What the text must look like, or None when it is free."""
        return self.guide_of_format if self.guided_regex is None else Guide(kind="regex", text=self.guided_regex)

    def field_behind(self, param: str | None) -> str | None:
        """The field that an error of the engine is about.

        Args:
            param: what it is about in the engine's words, a sampling parameter or ``prompt``.
        """
        if param == "guide":
            return "response_format" if self.guided_regex is None else "guided_regex"
        return param

    def sampling_params(self, *, max_tokens: int, logprobs: int | None, guide: Guide | None) -> SamplingParams:
        """How to sample. OpenAI's defaults: temperature 1, every token kept."""
        return SamplingParams(
            max_tokens=max_tokens,
            min_tokens=self.min_tokens or 0,
            temperature=1.0 if self.temperature is None else self.temperature,
            top_p=1.0 if self.top_p is None else self.top_p,
            top_k=self.top_k or 0,
            min_p=self.min_p or 0.0,
            repetition_penalty=1.0 if self.repetition_penalty is None else self.repetition_penalty,
            presence_penalty=self.presence_penalty or 0.0,
            frequency_penalty=self.frequency_penalty or 0.0,
            logit_bias=self.logit_bias or {},
            seed=self.seed,
            stop=(self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ()),
            stop_token_ids=tuple(self.stop_token_ids or ()),
            ignore_eos=bool(self.ignore_eos),
            logprobs=logprobs,
            n=self.answers,
            guide=guide,
        )


def field_error(param: str, message: str) -> PydanticCustomError:
    """What a validator of a whole body raises, so that the error names the field that it is about."""
    return PydanticCustomError("field_error", "{message}", {"message": message, "param": param})


def _changes_nothing(name: str, value: object) -> bool:
    return name in _WITHOUT_EFFECT or (name in _NEUTRAL and (value is None or value in _NEUTRAL[name]))
