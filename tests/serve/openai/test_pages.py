"""Who holds each page, as the front tells it, and how it asks Triton."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import httpx
import numpy as np
import pytest
from fronts import Script, serving

from roundhouse.serve.openai import triton_client
from roundhouse.serve.openai.api_keys import ApiKeys
from roundhouse.serve.openai.chat import ChatTemplate
from roundhouse.serve.openai.errors import ApiError
from roundhouse.serve.openai.triton_client import TritonClient


def test_the_answer_is_passed_on_as_it_is(http: httpx.Client, script: Script) -> None:
    script.page_map = b'{"object":"page_map"}'
    answer = http.get("/pages")
    assert (answer.status_code, answer.content) == (200, script.page_map)
    assert answer.headers["content-type"] == "application/json"


def test_why_there_is_none_is_said(http: httpx.Client, script: Script) -> None:
    script.trouble = "[unavailable] the engine process is down"
    answer = http.get("/pages")
    assert (answer.status_code, answer.json()["error"]["message"]) == (503, "the engine process is down")
    assert http.get("/pages?model=another").status_code == 404


def test_of_several_models_one_is_named(hermes: ChatTemplate) -> None:
    with serving({"a": (hermes, Script(page_map=b"1")), "b": (hermes, Script(page_map=b"2"))}) as url:
        assert httpx.get(f"{url}/pages?model=b", trust_env=False).content == b"2"
        unnamed = httpx.get(f"{url}/pages", trust_env=False)
    assert unnamed.status_code == 400
    assert (unnamed.json()["error"]["param"], "?model=NAME" in unnamed.text) == ("model", True)


def test_it_is_behind_the_key(hermes: ChatTemplate) -> None:
    with serving({"m": (hermes, Script())}, api_keys=ApiKeys(["sesame"])) as url:
        assert httpx.get(f"{url}/pages", trust_env=False).status_code == 401
        assert httpx.get(f"{url}/pages", trust_env=False, headers={"authorization": "Bearer sesame"}).status_code == 200


class Told:
    """What Triton gives back."""

    def __init__(self, text: str) -> None:
        self._text = text

    def as_numpy(self, name: str) -> Any:
        assert name == "page_map"
        return np.array([self._text.encode()], dtype=np.object_)


def asking(client: TritonClient, answers: list[list[tuple[Any, Any]]], may_answer: asyncio.Event) -> list[dict[str, Any]]:
    """Have a client ask nobody: its questions are noted and answered in turn."""
    asked: list[dict[str, Any]] = []

    async def ask(values: dict[str, Any]) -> AsyncIterator[tuple[Any, Any]]:
        await may_answer.wait()
        for each in answers[len(asked) - 1]:
            yield each

    def note(values: dict[str, Any], request_id: str, session: str = "") -> AsyncIterator[tuple[Any, Any]]:
        asked.append(values)
        return ask(values)

    client._ask = note  # type: ignore[method-assign,assignment]
    return asked


def test_whoever_asks_meanwhile_gets_the_same_answer_even_when_the_first_has_left() -> None:
    async def play() -> None:
        client, may_answer = TritonClient("127.0.0.1:1", "m", "http://127.0.0.1:1/metrics"), asyncio.Event()
        asked = asking(client, [[(Told("one"), None)], [(Told("two"), None)]], may_answer)
        first, second = asyncio.ensure_future(client.pages()), asyncio.ensure_future(client.pages())
        await asyncio.sleep(0)
        first.cancel()
        may_answer.set()
        assert await second == b"one"
        assert asked == [{"pages": True}]
        assert await client.pages() == b"two"
        await client.close()

    asyncio.run(play())


def test_an_engine_that_does_not_say_it_in_time_is_not_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_client, "_PAGES_TIMEOUT_S", 0.01)

    async def play() -> None:
        client, may_answer = TritonClient("127.0.0.1:1", "m", "http://127.0.0.1:1/metrics"), asyncio.Event()
        asked = asking(client, [[(Told("late"), None)]], may_answer)
        for _ in range(2):
            with pytest.raises(ApiError, match="who holds its pages") as caught:
                await client.pages()
            assert (caught.value.status, caught.value.code) == (503, "unavailable")
        assert len(asked) == 1
        await client.close()

    asyncio.run(play())


def test_what_triton_says_against_it_is_passed_on() -> None:
    class Refusal:
        def message(self) -> str:
            return "unexpected inference input 'pages' for model 'm'"

    async def play() -> None:
        client, may_answer = TritonClient("127.0.0.1:1", "m", "http://127.0.0.1:1/metrics"), asyncio.Event()
        asking(client, [[(None, Refusal())], []], may_answer)
        may_answer.set()
        with pytest.raises(ApiError, match="unexpected inference input"):
            await client.pages()
        with pytest.raises(ApiError, match="ended the stream"):
            await client.pages()
        await client.close()

    asyncio.run(play())


def test_an_answer_that_comes_when_nobody_waits_any_more_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_client, "_PAGES_TIMEOUT_S", 0.01)
    faults: list[dict[str, Any]] = []

    async def play() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
        client, may_answer = TritonClient("127.0.0.1:1", "m", "http://127.0.0.1:1/metrics"), asyncio.Event()
        asking(client, [[], [(Told("now"), None)]], may_answer)  # the first stream ends without an answer, an error
        with pytest.raises(ApiError, match="who holds its pages"):
            await client.pages()
        may_answer.set()
        await asyncio.sleep(0.01)
        assert await client.pages() == b"now"
        gc.collect()
        await client.close()

    asyncio.run(play())
    assert faults == []


def test_an_engine_that_never_says_it_is_asked_anew_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_client, "_PAGES_TIMEOUT_S", 0.01)
    monkeypatch.setattr(triton_client, "_PAGES_GIVEN_UP_S", 0.05)

    class Mute:
        asked = cut_off = 0

        async def __aiter__(self) -> AsyncIterator[tuple[Any, Any]]:
            await asyncio.Event().wait()
            yield None, None

        def cancel(self) -> None:
            self.cut_off += 1

    async def play() -> None:
        client, mute = TritonClient("127.0.0.1:1", "m", "http://127.0.0.1:1/metrics"), Mute()

        def ask(*_: Any) -> Mute:
            mute.asked += 1
            return mute

        client._ask = ask  # type: ignore[method-assign,assignment]
        for _ in range(2):
            with pytest.raises(ApiError, match="who holds its pages"):
                await client.pages()
            await asyncio.sleep(0.1)
        assert (mute.asked, mute.cut_off) == (2, 2)
        await client.close()

    asyncio.run(play())
