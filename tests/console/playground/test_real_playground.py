"""The playground against the real thing: stopping an answer gives its pages back to the engine."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import aclosing

import httpx
import pytest
from deploying import Workshop, wait_for
from sqlalchemy import URL

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.console.access.sealing import Sealer
from roundhouse.console.database.database import Database
from roundhouse.console.playground.answering import Done, Words, answer
from roundhouse.console.playground.question import Message, Parameters, Question
from roundhouse.console.playground.upstream import Upstream
from roundhouse.console.supervisor.process import find, stop
from roundhouse.console.worker.kinds import deploy
from roundhouse.serve.triton.samples import Sample, sample_of

KEY = "only-those-who-have-it"


@pytest.fixture(scope="module")
def shop(
    tiny_engine: Engine, session_home: Home, migrated: dict[str, URL], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workshop]:
    file = tmp_path_factory.mktemp("playground") / "console.sqlite3"
    shutil.copy(str(migrated["sqlite"].database), file)
    database = Database(URL.create("sqlite", database=str(file)))
    yield Workshop.of(database, session_home, tiny_engine)
    database.close()


@pytest.fixture(scope="module")
def served(shop: Workshop) -> Iterator[str]:
    id_ = shop.ask("played-with", key=KEY, overrides={"max_seq_len": 512})
    shop.do(deploy.run)
    yield id_
    stop(shop.folder(id_), drain_s=0.0)
    if (running := find(shop.folder(id_))) is not None:
        os.kill(running.pid, signal.SIGKILL)


def upstream(shop: Workshop, id_: str) -> Upstream:
    row = shop.row(id_)
    assert row.endpoints is not None
    assert row.sealed is not None
    key = Sealer.of(shop.home).open(row.sealed)["api_key"]
    return Upstream(id_, row.name, row.endpoints["openai"], row.endpoints["chat"], key)


def counted(shop: Workshop, id_: str) -> Sample:
    row = shop.row(id_)
    assert row.endpoints is not None
    found = sample_of(httpx.get(row.endpoints["metrics"], trust_env=False).text, row.name)
    assert found is not None
    return found


def question(**parameters: object) -> Question:
    return Question(messages=(Message(role="user", content="The capital"),), parameters=Parameters.model_validate(parameters))


def test_an_answer_is_streamed_and_counted(shop: Workshop, served: str) -> None:
    async def all_of_it() -> list[object]:
        return [part async for part in answer(upstream(shop, served), question(max_tokens=6, temperature=0))]

    *words, done = asyncio.run(all_of_it())
    assert isinstance(done, Done), done
    assert done.tokens is not None
    assert done.tokens <= 6
    assert all(isinstance(each, Words) for each in words)


def test_stopping_an_answer_gives_its_pages_back(shop: Workshop, served: str) -> None:
    async def listen_a_little() -> None:
        async with aclosing(answer(upstream(shop, served), question(max_tokens=480, temperature=0))) as parts:
            async for part in parts:
                assert isinstance(part, Words), part
                break

    before = counted(shop, served).generated_tokens
    asyncio.run(listen_a_little())
    wait_for(lambda: counted(shop, served).generated_tokens > before, "the engine tells of it")
    wait_for(lambda: counted(shop, served).running == 0 and counted(shop, served).pages_used == 0, "its pages are back")
    assert counted(shop, served).generated_tokens - before < 480
