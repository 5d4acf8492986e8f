"""The playground: who may ask whom, what is seen, and that stopping stops."""

from __future__ import annotations

import json
import re
import threading
from html import unescape
from pathlib import Path

import httpx
import pytest
import uvicorn
from browsing import ORIGIN, Browser, BrowserMaker
from deployed import add_deployment
from fronts_made_up import MadeUpFront

from roundhouse.build.home import Home
from roundhouse.console.database.database import Database
from roundhouse.serve.triton.ports import bind_port

QUESTION = {"messages": [{"role": "user", "content": "hello"}], "parameters": {"max_tokens": 3}}


def chat(browser: Browser, deployment_id: str = "aaaaaaaa", question: object = QUESTION) -> httpx.Response:
    headers = {"origin": ORIGIN, "x-form-token": browser.form_token(), "accept": "text/event-stream, application/problem+json"}
    return browser.post(f"/playground/{deployment_id}/chat", json=question, headers=headers)  # type: ignore[return-value]


def parts(text: str) -> list[dict[str, object]]:
    return [json.loads(event.removeprefix("data: ")) for event in text.split("\n\n") if event]


def test_an_answer_comes_as_events_with_the_deployments_own_key(
    browser: BrowserMaker, database: Database, tmp_path: Path
) -> None:
    with MadeUpFront() as front:
        with database.writing() as session:
            add_deployment(session, openai=front.url, key="sesame", key_home=Home(tmp_path / "home"))
        answer = chat(browser("operator"))
    assert answer.headers["content-type"].startswith("text/event-stream")
    *words, done = parts(answer.text)
    assert [each["text"] for each in words] == ["Hel", "lo ", "<b>"]
    assert (done["tokens"], done["finish_reason"]) == (3, "length")
    assert front.asked[0][2] == "Bearer sesame"
    assert "sesame" not in answer.text


def test_only_who_may_deploy_may_ask(browser: BrowserMaker, database: Database) -> None:
    with MadeUpFront() as front:
        with database.writing() as session:
            add_deployment(session, openai=front.url)
        viewer = browser("viewer")
        assert viewer.get("/playground").status_code == 200
        assert "needs the role operator" in viewer.get("/playground").text
        assert chat(viewer).status_code == 403
        form = {"with": "aaaaaaaa", "prompt": "hello"}
        assert viewer.submit("/playground", form).status_code == 403  # type: ignore[attr-defined]
        nobody = browser().post("/playground/aaaaaaaa/chat", json=QUESTION, headers={"accept": "application/problem+json"})
        assert nobody.status_code == 401
    assert front.asked == []


@pytest.mark.parametrize(
    ("changes", "status", "says"),
    [
        ({"state": "dead"}, 409, "tiny is dead"),
        ({"state": "starting", "openai": None}, 409, "does not answer yet"),
        ({"host": "elsewhere"}, 409, "listens only to its own host"),
        ({"identity": "bbbbbbbb"}, 404, "there is no deployment aaaaaaaa"),
    ],
)
def test_who_cannot_be_asked_is_said_in_words(
    browser: BrowserMaker, database: Database, changes: dict[str, str | None], status: int, says: str
) -> None:
    with database.writing() as session:
        add_deployment(session, **({"openai": "http://127.0.0.1:1/v1"} | changes))  # type: ignore[arg-type]
    answer = chat(browser("operator"))
    assert answer.status_code == status
    assert says in answer.json()["detail"]


def test_a_question_of_another_shape_is_refused(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_deployment(session, openai="http://127.0.0.1:1/v1")
    operator = browser("operator")
    for wrong in ({"messages": []}, {**QUESTION, "url": "http://169.254.0.1/"}, {**QUESTION, "parameters": {"top_p": 2}}):
        assert chat(operator, question=wrong).status_code == 422


def test_without_scripts_two_answers_come_on_the_page(browser: BrowserMaker, database: Database) -> None:
    with MadeUpFront() as one, MadeUpFront(words=("other",)) as two:
        with database.writing() as session:
            add_deployment(session, openai=one.url)
            add_deployment(session, "bbbbbbbb", name="second", openai=two.url)
        operator = browser("operator")
        form = {"with": "aaaaaaaa", "beside": "bbbbbbbb", "prompt": "first", "temperature": "0.5"}
        page = operator.submit("/playground", form).text  # type: ignore[attr-defined]
        assert "Hello &lt;b&gt;" in page
        assert "other" in page
        assert 'value="0.5"' in page
        found = re.search(r'name="conversation" value="([^"]*)"', page)
        assert found is not None
        operator.submit("/playground", {**form, "prompt": "then", "conversation": unescape(found[1])})
        assert [each["content"] for each in one.asked[1][1]["messages"]] == ["first", "Hello <b>", "then"]
        assert [each["content"] for each in two.asked[1][1]["messages"]] == ["first", "other", "then"]


def test_a_form_that_is_wrong_comes_back_with_what_was_typed(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_deployment(session, openai="http://127.0.0.1:1/v1")
    form = {"with": "aaaaaaaa", "prompt": "keep me", "temperature": "7"}
    answer = browser("operator").submit("/playground", form)
    assert answer.status_code == 422  # type: ignore[attr-defined]
    text = answer.text  # type: ignore[attr-defined]
    assert "keep me" in text
    assert "less than or equal to 2" in text


def test_nothing_deployed_and_something_put_away_say_what_to_do(browser: BrowserMaker) -> None:
    operator = browser("operator")
    for path in ("/playground", "/playground?with=cccccccc"):
        assert 'href="/deployments/new"' in operator.get(path).text
    assert "There is no deployment cccccccc." in operator.get("/playground?with=cccccccc").text
    assert "above" not in operator.get("/playground?with=cccccccc").text
    assert "/deployments/new" not in browser("viewer").get("/playground").text


def test_one_that_is_not_there_is_said_beside_those_that_are(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_deployment(session, openai="http://127.0.0.1:1/v1")
    text = browser("operator").get("/playground?with=cccccccc").text
    assert "There is no deployment cccccccc." in text
    assert "Choose another one above." in text
    assert "Nothing is deployed now" not in text


def test_who_continues_texts_says_so(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_deployment(session, openai="http://127.0.0.1:1/v1", chat=False)
    assert "continues the text that you send" in browser("operator").get("/playground").text


def test_stopping_closes_the_connection_behind_it_and_a_stream_holds_no_database_connection(
    browser: BrowserMaker, database: Database
) -> None:
    operator = browser("operator")
    listening = bind_port("127.0.0.1", 0)
    listening.listen()
    server = uvicorn.Server(uvicorn.Config(operator.app, log_level="error", ws="none", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        with MadeUpFront(endless=True) as front:
            with database.writing() as session:
                add_deployment(session, openai=front.url)
            origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
            headers = {"origin": origin, "x-form-token": operator.form_token()}
            cookies = {"roundhouse_login": operator.cookies["roundhouse_login"]}
            with (
                httpx.Client(base_url=origin, headers=headers, cookies=cookies, timeout=30, trust_env=False) as client,
                client.stream("POST", "/playground/aaaaaaaa/chat", json=QUESTION) as answer,
            ):
                assert "again" in "".join(text for text, _ in zip(answer.iter_text(), range(8), strict=False))
                assert not front.left.is_set()
                assert database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]  # as a queue pool has it
            assert front.left.wait(30)
    finally:
        server.should_exit = True
        thread.join(15)
        listening.close()
