"""A conversation as the page shows it, and as a form without scripts carries it along."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from roundhouse.errors import RoundhouseError

from .answering import Done, Problem, Words, answer
from .question import Message, Parameters, Question
from .upstream import Upstream

__all__ = ["Shown", "Turn", "ask_all", "conversation_json", "conversation_of", "history"]

_MOST_TURNS = 200
_LONGEST_WAIT_S = 120.0
"""A browser shows nothing of such an answer before its end, and gives up some time after this."""


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Shown(_Kept):
    """What a deployment made of a prompt."""

    text: str
    done: Done | None = None
    problem: Problem | None = None
    stopped: bool = False
    """Whether somebody stopped it."""
    ttft_s: float | None = None
    """As the browser saw it; the only thing known of an answer that was stopped."""


class Turn(_Kept):
    """A prompt, and what was answered, by the deployment's id."""

    prompt: str
    answers: Annotated[dict[str, Shown], Field(max_length=2)]


_conversation = TypeAdapter(Annotated[tuple[Turn, ...], Field(max_length=_MOST_TURNS)])


def conversation_of(text: str) -> tuple[Turn, ...]:
    """The conversation that a form carries; none where it cannot be read, which only a made-up form is."""
    try:
        return _conversation.validate_json(text)
    except ValidationError:
        return ()


def conversation_json(turns: Sequence[Turn]) -> str:
    """The conversation for a form to carry."""
    return _conversation.dump_json(tuple(turns)).decode()


def history(turns: Sequence[Turn], deployment_id: str, prompt: str) -> tuple[Message, ...]:
    """What one deployment has been asked and has said, and the prompt. What it left without an answer is not repeated."""
    said = [(turn.prompt, turn.answers[deployment_id].text) for turn in turns if deployment_id in turn.answers]
    pairs = [(Message(role="user", content=asked), Message(role="assistant", content=text)) for asked, text in said if text]
    return (*(message for pair in pairs for message in pair), Message(role="user", content=prompt))


def ask_all(
    ids: Sequence[str],
    find: Callable[[str], Upstream],
    turns: Sequence[Turn],
    prompt: str,
    parameters: Parameters,
) -> dict[str, Shown]:
    """Ask several deployments at once, and wait for their whole answers. For threads that run no event loop.

    Args:
        ids: whom.
        find: where each of them answers.
        turns: what was said before.
        prompt: what to ask now.
        parameters: how to answer.
    """

    async def one(deployment_id: str) -> Shown:
        try:
            upstream = await asyncio.to_thread(find, deployment_id)
        except RoundhouseError as error:
            return Shown(text="", problem=Problem(problem=error.message, hint=error.hint))
        question = Question(messages=history(turns, deployment_id, prompt), parameters=parameters)
        return await _whole(upstream, question)

    async def all_of_them() -> list[Shown]:
        return await asyncio.gather(*(one(each) for each in ids))

    return dict(zip(ids, asyncio.run(all_of_them()), strict=True))


async def _whole(upstream: Upstream, question: Question) -> Shown:
    text = ""
    try:
        async with asyncio.timeout(_LONGEST_WAIT_S), aclosing(answer(upstream, question)) as parts:
            async for part in parts:
                if isinstance(part, Words):
                    text += part.text
                elif isinstance(part, Done):
                    return Shown(text=text, done=part)
                else:
                    return Shown(text=text, problem=part)
    except TimeoutError:
        pass
    waited = Problem(problem=f"stopped after {_LONGEST_WAIT_S:.0f} seconds", hint="Ask for fewer tokens.")
    return Shown(text=text, problem=waited)
