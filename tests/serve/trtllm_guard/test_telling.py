"""What rank 0 tells of the check, over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from executor_twins import LlmRequest
from guarding import make_guarded

from roundhouse.errors import SetupError
from roundhouse.serve.openai.readiness import engine_problem
from roundhouse.serve.triton.metrics import METRICS
from roundhouse.serve.trtllm_guard.telling import GuardServer, GuardState, exposition


@pytest.fixture(scope="module")
def server() -> Iterator[GuardServer]:
    server = GuardServer(GuardState("14cadfd1"), ("127.0.0.1", 0))
    yield server
    server.close()


@pytest.fixture
def state(server: GuardServer) -> GuardState:
    """The server's, as it is at the start."""
    server.state.ranks, server.state.unguarded = 0, False
    return server.state


def ask(server: GuardServer, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def values(text: str) -> dict[str, float]:
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    return {line.partition("{")[0]: float(line.rpartition(" ")[2]) for line in samples}


def test_it_is_ready_when_every_rank_is(state: GuardState, server: GuardServer) -> None:
    status, body = ask(server, "/ready")
    assert status == 503
    assert "not every rank" in json.loads(body)["problem"]
    assert values(ask(server, "/metrics")[1])["roundhouse_guard_alive"] == 0
    state.ranks = 4
    status, body = ask(server, "/ready")
    assert (status, json.loads(body)) == (200, {"ready": True, "ranks": 4, "checks": 0, "problem": None})
    assert values(ask(server, "/metrics")[1])["roundhouse_guard_alive"] == 1


def test_a_step_without_the_check_ends_readiness(state: GuardState, server: GuardServer) -> None:
    state.ranks, state.unguarded = 1, True
    status, body = ask(server, "/ready")
    assert status == 503
    assert "without the page check" in json.loads(body)["problem"]
    assert values(ask(server, "/metrics")[1])["roundhouse_guard_alive"] == 0


def test_other_paths_are_not_there(server: GuardServer) -> None:
    assert ask(server, "/")[0] == 404
    assert ask(server, "/ready/")[0] == 404


def test_metrics_have_the_names_and_kinds_of_other_engines(state: GuardState) -> None:
    kinds = {name: kind for name, _, kind, _ in METRICS}
    told = dict(line.split()[2:] for line in exposition(state).splitlines() if line.startswith("# TYPE"))
    assert told.items() <= kinds.items()
    assert {"roundhouse_guard_alive", "roundhouse_tag_checks_total", "roundhouse_tag_mismatches_total"} <= told.keys()
    assert "roundhouse_kv_pages_quarantined" in told
    # The form is the one that our front reads from Triton; of these metrics it needs others besides.
    assert engine_problem(exposition(state), "14cadfd1", 0.0) == "the engine process is down"


def test_metrics_count_what_happened_and_every_page() -> None:
    engine = make_guarded(pages=40)
    for number in range(1, 4):
        engine.submit(LlmRequest(number, [1, 2, 3, 4, number], 6))
    engine.executor.step()
    engine.manager.page_book.tracker.page_tags[engine.blocks.sequences[1][0].id] = 0
    engine.executor.step()
    told = values(exposition(engine.check.state))
    assert told["roundhouse_tag_checks_total"] == told["roundhouse_steps_total"] == 2
    assert told["roundhouse_tag_mismatches_total"] == 1
    assert (told["roundhouse_kv_pages_used"], told["roundhouse_kv_pages_quarantined"]) == (4, 2)
    assert sum(value for name, value in told.items() if name.startswith("roundhouse_kv_pages")) == 40


def test_too_many_quarantined_pages_end_readiness() -> None:
    engine = make_guarded(pages=40)
    engine.check.state.ranks = 1
    engine.submit(LlmRequest(1, [1, 2, 3, 4] * 4, 6))
    engine.executor.step()
    engine.manager.page_book.tracker.page_tags[engine.blocks.sequences[1][0].id] = 99
    engine.executor.step()
    problem = engine.check.state.problem()
    assert problem is not None
    assert problem.startswith("5 of 40 KV pages are quarantined")


def test_an_address_that_is_taken_is_an_error(server: GuardServer, state: GuardState) -> None:
    with pytest.raises(SetupError, match=f"cannot listen on 127.0.0.1:{server.port}") as caught:
        GuardServer(state, ("127.0.0.1", server.port))
    assert "ROUNDHOUSE_GUARD_METRICS" in str(caught.value)


def test_the_engine_s_name_is_a_label() -> None:
    assert 'model="a\\"b"' in exposition(GuardState('a"b'))
