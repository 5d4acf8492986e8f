"""A fault in the pool's books ends exactly the request it hits, and the loop goes on."""

from __future__ import annotations

import logging

import pytest
from driving import failure, request, scripted_loop, tokens
from faults import FAULTS, freed, newcomer, run_to_the_end, serve_with_newcomer, stale_cell, three_requests

from roundhouse.errors import ServeError
from roundhouse.serve.engine.pool import Grant
from roundhouse.serve.engine.request import Chunk
from roundhouse.serve.engine.tokenizer import EngineTokenizer

OTHERS = ("a", "b", "newcomer")


@pytest.mark.parametrize("guard", ["tags", "tags+content"])
@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_exactly_its_victim(
    tokenizer: EngineTokenizer, caplog: pytest.LogCaptureFixture, fault: str, column: int, guard: str
) -> None:
    loop, runtime = scripted_loop(tokenizer, guard=guard)
    expected = serve_with_newcomer(scripted_loop(tokenizer)[0], lambda: None)
    with caplog.at_level(logging.ERROR):
        outputs = serve_with_newcomer(loop, lambda: FAULTS[fault](loop, column))
    assert failure(outputs["victim"]).code == "page_tag_mismatch"
    assert tokens(outputs["victim"]) == tokens(expected["victim"])[:2]
    assert {name: outputs[name] for name in OTHERS} == {name: expected[name] for name in OTHERS}
    assert sum(s.request_id == "victim" for batch in runtime.forwards for s, _ in batch.runs) == 2
    assert f"request victim, step 3: page tag mismatch, column {column}, page " in caplog.messages[0]
    assert "request victim ended, page " in caplog.messages[1]
    assert len(caplog.messages) == 2
    status = loop.status()
    # The two pages that only the victim held rightfully; the third is whoever's it is.
    assert (status.tag_mismatches, status.content_mismatches, status.pages_quarantined, status.running) == (1, 0, 2, 0)
    assert status.pages_free + status.pages_used + status.pages_quarantined == 64
    if fault == "stale_cell":
        assert status.pages_used == 1
        with pytest.raises(ServeError, match="counts 1 holders, 0 hold it"):
            loop.check_integrity()
    else:
        assert status.pages_used == 0
        loop.check_integrity()
    loop.submit(request("next", [7] * 20, max_tokens=25))
    assert tokens(run_to_the_end(loop)) == tokens(expected["a"])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_reported_before_the_guard_meets_it(tokenizer: EngineTokenizer, fault: str) -> None:
    loop, _ = scripted_loop(tokenizer)
    for each in three_requests():
        loop.submit(each)
    loop.step()
    FAULTS[fault](loop, 1)
    with pytest.raises(ServeError, match="inconsistent"):
        loop.check_integrity()


@pytest.mark.parametrize("fault", FAULTS)
def test_cancelling_the_victim_of_a_fault_harms_nobody(
    tokenizer: EngineTokenizer, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    expected = serve_with_newcomer(scripted_loop(tokenizer)[0], lambda: None)
    loop, _ = scripted_loop(tokenizer)

    def damage_and_cancel() -> None:
        FAULTS[fault](loop, 1)
        loop.cancel("victim")

    with caplog.at_level(logging.ERROR):
        outputs = serve_with_newcomer(loop, damage_and_cancel)
    last = outputs["victim"][-1]
    assert isinstance(last, Chunk)
    assert last.finish_reason == "cancelled"
    assert {name: outputs[name] for name in OTHERS} == {name: expected[name] for name in OTHERS}
    assert loop.status().pages_quarantined == 0
    # A page that is on the free list too early was still the victim's own.
    events = [] if fault == "granted_twice" else ["request victim ended, page "]
    assert [message[: len("request victim ended, page ")] for message in caplog.messages] == events


@pytest.mark.parametrize("fault", FAULTS)
def test_without_the_guard_a_fault_is_not_found_and_ends_nothing(tokenizer: EngineTokenizer, fault: str) -> None:
    loop, _ = scripted_loop(tokenizer, guard="off")
    expected = serve_with_newcomer(scripted_loop(tokenizer)[0], lambda: None)
    assert serve_with_newcomer(loop, lambda: FAULTS[fault](loop, 1)) == expected


def test_a_victim_that_ends_by_itself_gives_back_only_what_is_its_own(
    tokenizer: EngineTokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    loop, _ = scripted_loop(tokenizer, guard="off")
    loop.submit(request("victim", [90] * 20, max_tokens=2))
    loop.step()
    freed(loop, 1)
    with caplog.at_level(logging.ERROR):
        (last,) = run_to_the_end(loop)
    assert last.finish_reason == "length"  # type: ignore[union-attr]
    assert loop.status().pages_free == 64
    assert "request victim ended, page 1: its tag 0 was withdrawn" in caplog.text
    loop.check_integrity()


def test_a_page_that_the_prefix_cache_shares_with_a_lost_holder_is_nothing_to_wait_for(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer, pages=8, prefix_reuse=True)
    loop.submit(request("victim", [90] * 20, max_tokens=9))
    loop.step()
    own = loop._live["victim"].answers[0].grants
    own[0] = Grant(7, 1000)  # two pages more are quarantined; the cache keeps this one, held twice
    loop.submit(request("all", [9] * 44, max_tokens=4))  # 6 pages
    outputs = run_to_the_end(loop)
    assert failure([o for o in outputs if o.request_id == "victim"]).code == "page_tag_mismatch"
    assert loop.status().pages_quarantined == 2
    assert failure([o for o in outputs if o.request_id == "all"]).code == "unavailable"
    loop.submit(request("five", [9] * 36, max_tokens=4))
    assert len(tokens(run_to_the_end(loop))) == 4


def test_a_request_that_a_lost_page_leaves_no_room_for_does_not_block_the_line(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer, pages=16, max_batch_size=3)
    for each in three_requests():
        loop.submit(each)
    loop.step()
    loop.submit(request("all", [9] * 100, max_tokens=10))  # 14 pages
    stale_cell(loop, 0)
    outputs = run_to_the_end(loop)  # 2 pages quarantined, 1 lost, 13 left
    assert failure([o for o in outputs if o.request_id == "all"]).code == "unavailable"
    loop.submit(newcomer())
    assert len(tokens(run_to_the_end(loop))) == 10
