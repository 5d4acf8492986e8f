"""Asking a deployment's front: what is sent, what comes back, and what becomes of it when nobody listens any more."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from fronts_made_up import MadeUpFront

from roundhouse.console.playground.answering import Done, Part, Problem, Words, answer
from roundhouse.console.playground.question import Message, Parameters, Question
from roundhouse.console.playground.upstream import Upstream

CONVERSATION = (
    Message(role="user", content="one"),
    Message(role="assistant", content="two"),
    Message(role="user", content="three"),
)


def ask(front: MadeUpFront, *, chat: bool = True, key: str | None = None, **parameters: object) -> list[Part]:
    question = Question(messages=CONVERSATION, parameters=Parameters.model_validate(parameters))

    async def all_of_it() -> list[Part]:
        return [part async for part in answer(Upstream("aaaaaaaa", "tiny", front.url, chat, key), question)]

    return asyncio.run(all_of_it())


def test_a_chat_is_asked_with_its_conversation_and_counted() -> None:
    with MadeUpFront() as front:
        *words, done = ask(front, key="secret", system="Be kind.", temperature=0, stop=["x"])
    assert "".join(each.text for each in words if isinstance(each, Words)) == "Hello <b>"
    assert isinstance(done, Done)
    assert (done.finish_reason, done.tokens, done.prompt_tokens, done.cached_tokens) == ("length", 3, 7, 4)
    assert done.ttft_s is not None
    assert done.ttft_s > 0
    route, body, authorization = front.asked[0]
    assert (route, authorization, body["temperature"], body["stop"]) == ("chat/completions", "Bearer secret", 0, ["x"])
    assert [message["content"] for message in body["messages"]] == ["Be kind.", "one", "two", "three"]
    assert "max_tokens" not in body


def test_a_model_that_cannot_chat_continues_the_last_text_only() -> None:
    with MadeUpFront() as front:
        *words, done = ask(front, chat=False, system="Be kind.", max_tokens=5)
    assert (len(words), type(done)) == (3, Done)
    route, body, authorization = front.asked[0]
    assert (route, body["prompt"], body["max_tokens"], authorization) == ("completions", "three", 5, None)
    assert "messages" not in body


@pytest.mark.parametrize(
    ("refuses", "says"),
    [
        ((401, "no key"), "tiny refuses the console's API key"),
        ((429, "1024 wait"), "tiny is overloaded: 1024 wait"),
        ((503, "unloaded"), "tiny cannot answer now: unloaded"),
        ((400, "top_k: no"), "tiny refuses this: top_k: no"),
        ((404, "who?"), "does not serve tiny"),
    ],
)
def test_a_refusal_is_said_in_words(refuses: tuple[int, str], says: str) -> None:
    with MadeUpFront(refuses=refuses) as front:
        (problem,) = ask(front)
    assert isinstance(problem, Problem)
    assert says in problem.problem


def test_an_answer_that_breaks_off_says_so_after_what_came() -> None:
    with MadeUpFront(error_after="the page check stopped it") as front:
        *words, problem = ask(front)
    assert (len(words), problem) == (3, Problem(problem="tiny stopped: the page check stopped it"))
    with MadeUpFront(breaks=True) as front:
        *words, problem = ask(front)
    assert len(words) == 3
    assert isinstance(problem, Problem)
    assert "broke off" in problem.problem


def test_a_deployment_that_is_gone_is_said_in_words() -> None:
    with MadeUpFront() as front:
        pass
    (problem,) = ask(front)
    assert isinstance(problem, Problem)
    assert "does not answer" in problem.problem


def test_who_stops_listening_ends_the_request() -> None:
    question = Question(messages=CONVERSATION)

    async def listen_a_little(front: MadeUpFront) -> None:
        async with aclosing(answer(Upstream("aaaaaaaa", "tiny", front.url, True), question)) as parts:
            async for _ in parts:
                break

    with MadeUpFront(endless=True) as front:
        asyncio.run(listen_a_little(front))
        assert front.left.wait(30)
