"""Looking at an endpoint before it is asked."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.errors import UsageError
from roundhouse.serve.measurement.endpoints import (
    api_key,
    base_url,
    host_of,
    is_here,
    metrics_url,
    model_at,
    port_of,
    require_metrics,
)
from roundhouse.serve.triton.metrics import ENGINE_UP

Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve these models, or this body, on a free port; returns the base URL."""
    with ExitStack() as stack:

        def start(*models: str, body: str | None = None, status: int = 200, key: str | None = None) -> str:
            answer = json.dumps({"data": [{"id": model} for model in models]}) if body is None else body

            class Handler(BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    denied = key is not None and self.headers["authorization"] != f"Bearer {key}"
                    self.send_response(401 if denied else status if self.path == "/v1/models" else 404)
                    self.end_headers()
                    self.wfile.write(answer.encode())

                def log_message(self, *_: object) -> None:
                    pass

            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            return f"http://127.0.0.1:{server.server_address[1]}/v1"

        yield start


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("http://host:8000", "http://host:8000/v1"),
        ("http://host:8000/", "http://host:8000/v1"),
        (" https://host/v1/ ", "https://host/v1"),
        ("http://[::1]:80/openai", "http://[::1]:80/openai/v1"),
    ],
)
def test_a_base_url_ends_with_its_version(text: str, base: str) -> None:
    assert base_url(text) == base


@pytest.mark.parametrize(
    "text", ["", "host:8000", "ftp://host", "http://", "http://host:99999", "http://[broken", "http://host:0"]
)
def test_what_is_no_url_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no URL of an endpoint"):
        base_url(text)


@pytest.mark.parametrize("text", ["http://key@host", "http://user:secret@host", "http://host/v1?key=secret", "http://host/#x"])
def test_secrets_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        base_url(text)
    assert "secret" not in str(refused.value)
    assert "--api-key-variable" in str(refused.value)


def test_here_is_the_loopback() -> None:
    assert [is_here(url) for url in ("http://127.0.0.1:1", "http://localhost/v1", "http://[::1]:1", "http://127.9.9.9")] == [
        True
    ] * 4
    assert [is_here(url) for url in ("http://10.0.0.1:1", "http://example.org/v1")] == [False] * 2
    assert [port_of(url) for url in ("http://a:81/v1", "http://a", "https://a")] == [81, 80, 443]


ODD = st.text() | st.builds(
    "".join,
    st.lists(
        st.sampled_from(
            ["http", "https", "://", "/", ":", "@", "[", "]", "::1", "host", "80", "-1", "65536", "?", "#", "%", "%zz"]
        )
        | st.sampled_from([" ", "\x00", "\n", "\ud800", "ä", "xn--", ".", "..", "v1", "\\", "[::1%eth0]", "\u2100", "１"]),
        max_size=9,
    ),
)


@pytest.mark.parametrize("read", [base_url, metrics_url])
@given(text=ODD | ODD.map("http://".__add__))
def test_any_text_is_a_url_that_can_be_asked_or_is_refused(read: Callable[[str], str], text: str) -> None:
    with contextlib.suppress(UsageError):
        url = read(text)
        assert httpx.URL(url).host
        assert host_of(url)
        assert 0 < port_of(url) < 65536
        assert is_here(url) in (True, False)
        assert read(url) == url


@pytest.mark.parametrize("text", ["", "host:8002", "ftp://host", "http://", "http://host:99999/metrics", "http://[broken"])
def test_what_is_no_url_of_metrics_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no URL of metrics"):
        metrics_url(text)


@pytest.mark.parametrize("text", ["http://u:secret@host/metrics", "http://host/metrics?key=secret"])
def test_secrets_in_a_url_of_metrics_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        metrics_url(text)
    assert "secret" not in str(refused.value)


def test_metrics_are_asked_once_beforehand(serve: Serve) -> None:
    told = f'{ENGINE_UP}{{model="one"}} 1\n'
    url = f"{serve(body=told)}/models"
    require_metrics(url, "one")
    with pytest.raises(UsageError, match=r"tells nothing of an engine of ours called 'two' \(HTTP 200\)"):
        require_metrics(url, "two")
    with pytest.raises(UsageError, match="tells nothing of an engine of ours"):
        require_metrics(f"{serve(body='<html>')}/models", "one")
    with pytest.raises(UsageError, match=r"\(HTTP 404\)"):
        require_metrics(f"{serve(body=told)}/elsewhere", "one")
    with pytest.raises(UsageError, match=r"nothing answers at http://127.0.0.1:9/metrics: .*\nIt is the /metrics of"):
        require_metrics("http://127.0.0.1:9/metrics", "one")


def test_the_only_model_need_not_be_named(serve: Serve) -> None:
    url = serve("one")
    assert model_at(url, None, None) == model_at(url, "one", None) == "one"


def test_half_a_character_in_a_name_ends_nothing(serve: Serve) -> None:
    assert model_at(serve("m\ud83d"), None, None) == "m?"


def test_of_several_models_one_must_be_chosen(serve: Serve) -> None:
    url = serve("one", "two")
    assert model_at(url, "two", None) == "two"
    with pytest.raises(UsageError, match=r"has 2 models\nChoose one with --model. It has: one, two"):
        model_at(url, None, None)
    with pytest.raises(UsageError, match=r"has no model 'three'\nIt has: one, two"):
        model_at(url, "three", None)
    with pytest.raises(UsageError, match="has 0 models"):
        model_at(serve(), None, None)


def test_a_key_is_asked_for_and_given(serve: Serve) -> None:
    url = serve("one", key="k")
    assert model_at(url, None, "k") == "one"
    with pytest.raises(UsageError, match=r"wants a key, or another one \(HTTP 401\)\nName the environment variable"):
        model_at(url, None, None)


@pytest.mark.parametrize("body", ["<html>", "[]", '{"data": 3}', '{"data": [{"name": "x"}]}'])
def test_what_is_no_such_api_is_said(serve: Serve, body: str) -> None:
    with pytest.raises(UsageError, match="does not list models"):
        model_at(serve(body=body), None, None)
    with pytest.raises(UsageError, match=r"does not list models \(HTTP 500\)"):
        model_at(serve("one", status=500), None, None)


def test_nobody_there_is_said() -> None:
    with pytest.raises(UsageError, match=r"nothing answers at http://127.0.0.1:9/v1: .*\nStart the server first"):
        model_at("http://127.0.0.1:9/v1", None, None)


def test_a_key_is_read_from_the_variable_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "k")
    assert (api_key(None), api_key("SOME_KEY")) == (None, "k")
    monkeypatch.setenv("SOME_KEY", "")
    with pytest.raises(UsageError, match="SOME_KEY is not set"):
        api_key("SOME_KEY")
