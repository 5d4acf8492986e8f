"""An endpoint asked over HTTP: a small server that answers as vLLM does, or as ours does, which echoes no log-probabilities."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from roundhouse.errors import BenchmarkStoppedError, ServeError
from roundhouse.serve.accuracy.endpoint_scorer import EndpointScorer
from roundhouse.serve.accuracy.scorer import CallQuestion, Continuation, Prompt
from roundhouse.serve.accuracy.suites.call_cases import TOOLS

Reply = tuple[int, dict[str, Any]]


def echoed(text: str) -> dict[str, Any]:
    """Words of the text and one more, each with log-probability −1 and the word itself the likeliest, as vLLM says it."""
    words = [word if not place else f" {word}" for place, word in enumerate(text.split(" "))] + [" more"]
    offsets = [sum(map(len, words[:place])) for place in range(len(words))]
    return {
        "tokens": words,
        "token_logprobs": [None, *[-1.0] * (len(words) - 1)],
        "top_logprobs": [None, *({word: -1.0, "other": -3.0} for word in words[1:])],
        "text_offset": offsets,
    }


def like_vllm(path: str, body: dict[str, Any]) -> Reply:
    if path.endswith("/chat/completions"):
        call = {"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
        return 200, {"choices": [{"message": {"content": None, "tool_calls": [call]}}]}
    text = body["prompt"].upper()
    choice = {"text": text, "logprobs": echoed(body["prompt"]) if body.get("echo") else None}
    return 200, {"choices": [choice]}


def like_ours(path: str, body: dict[str, Any]) -> Reply:
    if body.get("tools"):
        return 400, {"error": {"message": "this model's chat template has no place for tools"}}
    if body.get("echo"):
        return 400, {"error": {"message": "echo with logprobs is not supported here"}}
    return like_vllm(path, body)


@pytest.fixture
def serve() -> Iterator[Callable[..., EndpointScorer]]:
    """Start a server that answers by a function; returns a scorer of it."""
    started: list[tuple[ThreadingHTTPServer, threading.Thread, EndpointScorer]] = []

    def start(answer: Callable[[str, dict[str, Any]], Reply], stopping: threading.Event | None = None) -> EndpointScorer:
        class Server(ThreadingHTTPServer):
            request_queue_size = 64  # more connect at once than the usual five

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 5

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                body["key"] = self.headers.get("authorization")
                status, reply = answer(self.path, body)
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                with contextlib.suppress(OSError):  # whoever asked may be gone
                    self.end_headers()
                    self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        server = Server(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        scorer = EndpointScorer(url, "made-up", "secret", stopping or threading.Event(), timeout_s=20)
        started.append((server, thread, scorer))
        return scorer

    yield start
    for server, thread, scorer in started:
        scorer.close()
        server.shutdown()
        thread.join()
        server.server_close()


def test_prompts_are_completed_and_answers_cut_at_stops(serve) -> None:
    scorer = serve(like_vllm)
    prompts = [Prompt(f"question {number} end", 8, stop=(" END", "x", "y", "z", "UESTION 3")) for number in range(40)]
    found = dict(scorer.generate(prompts))
    assert found == {number: "Q" if number == 3 or 30 <= number < 40 else f"QUESTION {number}" for number in range(40)}


def test_the_key_is_sent_and_the_model_named(serve) -> None:
    seen: list[dict[str, Any]] = []
    scorer = serve(lambda path, body: seen.append(body) or like_vllm(path, body))
    list(scorer.generate([Prompt("a", 3, temperature=0.5, seed=7)]))
    assert {"model": "made-up", "key": "Bearer secret", "max_tokens": 3, "temperature": 0.5, "seed": 7}.items() <= seen[
        0
    ].items()


def test_likelihoods_are_of_the_continuation_alone(serve) -> None:
    scorer = serve(like_vllm)
    assert scorer.lacks("likelihoods") is None
    pairs = [Continuation("one two", " three four"), Continuation("one two ", "three"), Continuation("one", " other")]
    found = dict(scorer.likelihoods(pairs))
    assert [(found[n].logprob, found[n].tokens, found[n].is_greedy) for n in range(3)] == [
        (-2, 2, True),
        (-1, 1, True),
        (-1, 1, True),
    ]


def test_a_text_is_read_without_what_was_generated_after_it(serve) -> None:
    ((_, tokens),) = serve(like_vllm).read(["one two three"], top=64)
    assert [(token.end, token.logprob) for token in tokens] == [(3, None), (7, -1.0), (13, -1.0)]
    assert next(iter(tokens[1].top)) == " two"


def test_an_endpoint_that_echoes_nothing_says_why(serve) -> None:
    scorer = serve(like_ours)
    assert scorer.lacks("completions") is None
    assert "echo with logprobs is not supported here" in scorer.lacks("likelihoods")
    assert "no place for tools" in scorer.lacks("calls")
    ignoring = serve(lambda path, body: (200, {"choices": [{"text": "x", "logprobs": None}]}))
    assert ignoring.lacks("likelihoods").startswith("the endpoint gives no log-probabilities of prompts: ")


def test_only_what_is_needed_is_tried(serve) -> None:
    tried: list[str] = []

    def broken_but_for_completions(path: str, body: dict[str, Any]) -> Reply:
        tried.append(path)
        return (500, {}) if body.get("echo") or body.get("tools") else like_vllm(path, body)

    scorer = serve(broken_but_for_completions)
    assert scorer.lacks("completions") is None
    assert tried == ["/v1/completions"]
    for need in ("likelihoods", "calls"):
        with pytest.raises(ServeError, match="answered 500"):
            scorer.lacks(need)


def test_a_stop_while_something_is_tried_is_no_lack(serve) -> None:
    stopping = threading.Event()

    def stop_at_the_echo(path: str, body: dict[str, Any]) -> Reply:
        if body.get("echo"):
            stopping.set()
        return like_vllm(path, body)

    with pytest.raises(BenchmarkStoppedError):
        serve(stop_at_the_echo, stopping).lacks("likelihoods")


def test_an_endpoint_that_echoes_something_else_is_not_measured(serve) -> None:
    def elsewhere(path: str, body: dict[str, Any]) -> Reply:
        return like_vllm(path, body | {"prompt": "something else entirely"})

    scorer = serve(elsewhere)
    assert "not those of the text" in scorer.lacks("likelihoods")
    with pytest.raises(ServeError, match="not those of the text"):
        list(scorer.likelihoods([Continuation("one", " two")]))


def test_a_token_that_begins_the_document_scores_nothing_else(serve) -> None:
    def like_llama(path: str, body: dict[str, Any]) -> Reply:
        status, reply = like_vllm(path, body)
        if body.get("echo"):
            found = reply["choices"][0]["logprobs"]
            for key, first in (("tokens", "<|begin_of_text|>"), ("token_logprobs", None), ("top_logprobs", None)):
                found[key].insert(0, first)
            found["token_logprobs"][1], found["top_logprobs"][1] = -5.0, {found["tokens"][1]: -5.0}
            found["text_offset"] = [0, *(offset + len("<|begin_of_text|>") for offset in found["text_offset"])]
        return status, reply

    scorer = serve(like_llama)
    assert scorer.lacks("likelihoods") is None
    ((_, likelihood),) = scorer.likelihoods([Continuation("one two", " three four")])
    assert (likelihood.logprob, likelihood.tokens) == (-2.0, 2)


def test_calls_are_read_from_the_message(serve) -> None:
    question = CallQuestion("Weather in Oslo?", (TOOLS["get_weather"],), 32)
    ((_, answer),) = serve(like_vllm).call([question])
    assert answer.calls == (("get_weather", '{"city": "Oslo"}'),)


@pytest.mark.parametrize("reply", [{}, [], "x", {"choices": []}, {"choices": ["x"]}])
def test_answers_that_are_none_are_errors(serve, reply: Any) -> None:
    scorer = serve(lambda path, body: (200, reply))
    with pytest.raises(ServeError):
        list(scorer.generate([Prompt("a", 1)]))
    with pytest.raises(ServeError):
        list(scorer.call([CallQuestion("a", (), 1)]))
    with pytest.raises(ServeError):
        list(scorer.read(["a b"], top=1))


def test_an_error_of_the_server_is_told_in_its_words(serve) -> None:
    scorer = serve(lambda path, body: (500, {"error": {"message": "out of cheese"}}))
    with pytest.raises(ServeError, match="answered 500: out of cheese"):
        list(scorer.generate([Prompt("a", 1)]))
    with pytest.raises(ServeError):
        scorer.lacks("completions")  # broken, which says nothing of what it can


def test_a_key_that_a_server_repeats_is_not_kept(serve) -> None:
    scorer = serve(lambda path, body: (401, {"error": {"message": f"{'x' * 190} {body['key']} is no key"}}))
    with pytest.raises(ServeError, match="Bearer <redacted> is no key"):
        list(scorer.generate([Prompt("a", 1)]))


def test_half_a_character_in_a_reason_is_a_question_mark(serve) -> None:
    scorer = serve(lambda path, body: (400, {"error": {"message": "no \ud83d"}}))
    assert scorer.lacks("completions").endswith("answered 400: no ?")


def test_a_continuation_without_a_token_is_not_the_likeliest(serve) -> None:
    with pytest.raises(ServeError, match="no token of the continuation"):
        list(serve(like_vllm).likelihoods([Continuation("one two", "")]))


def test_a_busy_server_is_asked_again(serve, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def busy_once(path: str, body: dict[str, Any]) -> Reply:
        asked.append(path)
        return (429, {}) if len(asked) == 1 else like_vllm(path, body)

    stopping = threading.Event()
    monkeypatch.setattr(stopping, "wait", lambda seconds: False)
    assert dict(serve(busy_once, stopping).generate([Prompt("a", 1)])) == {0: "A"}
    assert len(asked) == 2


def test_a_stop_ends_what_is_asked(serve) -> None:
    stopping = threading.Event()

    def stop(path: str, body: dict[str, Any]) -> Reply:
        stopping.set()
        return like_vllm(path, body)

    with pytest.raises(BenchmarkStoppedError):
        list(serve(stop, stopping).generate([Prompt("a", 1)] * 100))


class Slow:
    """Answers nobody before it is let go; knows how many ask, and that nobody was answered."""

    def __init__(self, stopping: threading.Event | None = None) -> None:
        self.stopping = stopping
        self.let_go = threading.Event()
        self.answered: list[str] = []

    def __call__(self, path: str, body: dict[str, Any]) -> Reply:
        if self.stopping is not None:
            self.stopping.set()
        self.let_go.wait(20)
        self.answered.append(path)
        return like_vllm(path, body)


@pytest.mark.parametrize(
    "ask",
    [
        lambda scorer: list(scorer.generate([Prompt("a", 1)] * 40)),
        lambda scorer: list(scorer.read(["a b"], top=1)),
        lambda scorer: scorer.lacks("likelihoods"),
    ],
    ids=["many", "one", "a probe"],
)
def test_a_stop_waits_for_no_answer(serve, ask: Callable[[EndpointScorer], object]) -> None:
    stopping = threading.Event()
    slow = Slow(stopping)
    try:
        with pytest.raises(BenchmarkStoppedError):
            ask(serve(slow, stopping))
        assert slow.answered == []
        assert not [each.name for each in threading.enumerate() if each.name.startswith("evaluate")]
    finally:
        slow.let_go.set()


def test_an_error_waits_for_no_other_answer_and_the_next_is_asked(serve) -> None:
    slow, asked = Slow(), threading.Event()

    def one_fails(path: str, body: dict[str, Any]) -> Reply:
        if body["prompt"] == "bad":
            asked.wait(20)
            return 500, {"error": {"message": "out of cheese"}}
        if body["prompt"] == "slow":
            asked.set()
            return slow(path, body)
        return like_vllm(path, body)

    scorer = serve(one_fails)
    try:
        with pytest.raises(ServeError, match="out of cheese"):
            list(scorer.generate([Prompt("slow", 1), Prompt("bad", 1)]))
        assert slow.answered == []
        assert dict(scorer.generate([Prompt("fine", 1)])) == {0: "FINE"}
        assert next(scorer.generate([Prompt("fine", 1), Prompt("slow", 1)])) == (0, "FINE")  # and nobody reads on
        assert slow.answered == []
    finally:
        slow.let_go.set()


def test_a_server_that_is_gone_is_an_error() -> None:
    scorer = EndpointScorer("http://127.0.0.1:9/v1", "x", None, threading.Event(), timeout_s=1)
    with pytest.raises(ServeError, match="does not answer"):
        list(scorer.generate([Prompt("a", 1)]))
    scorer.close()
