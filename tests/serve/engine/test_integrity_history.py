"""What is told of a page that is not right: who held it, when, and under which tag; and what its client is told."""

from __future__ import annotations

import logging
import tracemalloc
from random import Random
from typing import Any

import pytest
from driving import drain, failure, random_prompt, request, scripted_loop, tokens
from faults import FAULTS, newcomer, run_to_the_end, three_requests
from remembering import remembering_loop

from roundhouse.serve.engine.integrity import NO_HISTORY, Holder, IntegrityEvent, PageHistory, mismatch_error
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.pool import Grant
from roundhouse.serve.engine.request import Output
from roundhouse.serve.engine.tokenizer import EngineTokenizer

NOW = 1_700_000_000.25


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roundhouse.serve.engine.integrity.check.time.time", lambda: NOW)


def watched(loop: EngineLoop) -> list[IntegrityEvent]:
    events: list[IntegrityEvent] = []
    loop._on_integrity_event = events.append
    return events


def holder(request_id: str, tag: int, step: int, how: Any = "granted") -> Holder:
    return Holder(request_id=request_id, tag=tag, step=step, how=how)


def event(**changes: Any) -> IntegrityEvent:
    fields: dict[str, Any] = {
        "event": "victim/3/0",
        "time": NOW,
        "kind": "tag",
        "request_id": "victim",
        "answer": 0,
        "step": 3,
        "column": 1,
        "page": 4,
        "expected_tag": 5,
        "found_tag": 10,
        "last_holders": [holder("newcomer", 10, 3), holder("victim", 5, 1)],
    }
    return IntegrityEvent(**fields | changes)


def test_an_event_tells_how_a_page_changed_hands(tokenizer: EngineTokenizer, caplog: pytest.LogCaptureFixture) -> None:
    loop, _ = scripted_loop(tokenizer)
    events = watched(loop)
    for each in three_requests():
        loop.submit(each)
    loop.step()
    loop.step()
    FAULTS["freed_and_regranted"](loop, 1)
    loop.submit(newcomer())
    with caplog.at_level(logging.ERROR):
        outputs = run_to_the_end(loop)
    assert events == [event()]
    assert caplog.messages[0] == str(event())
    told = failure([output for output in outputs if output.request_id == "victim"])
    assert (told.code, told.message) == (mismatch_error(event()).code, mismatch_error(event()).message)


@pytest.mark.parametrize(
    ("what", "text"),
    [
        (
            event(),
            (
                "request victim, step 3: page tag mismatch, column 1, page 4, expected tag 5, found 10; last holders: "
                "newcomer (granted, tag 10, step 3), victim (granted, tag 5, step 1) (integrity event victim/3/0)"
            ),
        ),
        (
            event(kind="content", found_tag=5, last_holders=[holder("victim", 5, 2, "shared"), holder("first", 5, 1)]),
            (
                "request victim, step 3: page content mismatch, column 1, page 4, expected tag 5, found 5; last holders: "
                "victim (shared, tag 5, step 2), first (granted, tag 5, step 1) (integrity event victim/3/0)"
            ),
        ),
        (
            event(page=999, found_tag=None, last_holders=[]),
            (
                "request victim, step 3: page tag mismatch, column 1, page 999, expected tag 5, found no such page; "
                "last holders: not known (integrity event victim/3/0)"
            ),
        ),
        (
            event(kind="count", page=None, expected_tag=0, found_tag=None, last_holders=[]),
            "request victim, step 3: page count mismatch, column 1 (integrity event victim/3/0)",
        ),
    ],
)
def test_an_event_reads_as_a_sentence(what: IntegrityEvent, text: str) -> None:
    assert str(what) == text


@pytest.mark.parametrize(
    ("what", "code", "message"),
    [
        (event(), "page_tag_mismatch", "the KV page at column 1 no longer carries this request's tag"),
        (
            event(kind="count", page=None),
            "page_tag_mismatch",
            "the table of this request's KV pages does not have as many as it needs (column 1)",
        ),
        (
            event(kind="content"),
            "page_content_mismatch",
            "the KV page at column 1 no longer holds what was written for this request",
        ),
    ],
)
def test_a_client_learns_the_event_and_nothing_of_others(what: IntegrityEvent, code: str, message: str) -> None:
    error = mismatch_error(what)
    assert error.message == f"{message}; nothing was computed from it (integrity event victim/3/0)"
    assert (error.code, error.hint) == (code, None)


def test_a_page_of_the_prefix_cache_names_who_found_it_there(tokenizer: EngineTokenizer) -> None:
    loop, _ = remembering_loop(tokenizer)
    events = watched(loop)
    prompt = random_prompt(20, seed=1)
    loop.submit(request("first", prompt, max_tokens=2))
    drain(loop)
    for name in ("second", "third"):
        loop.submit(request(name, prompt, max_tokens=40))
        loop.step()
    page, tag = loop._live["third"].answers[0].grants[0]
    loop.pool.tracker.page_tags[page] += 1000
    outputs = drain(loop)
    holders = [holder("third", tag, 4, "shared"), holder("second", tag, 3, "shared"), holder("first", tag, 1)]
    assert [each.last_holders for each in events] == [holders, holders]
    assert [each.event for each in events] == ["second/5/0", "third/5/0"]
    for name in ("second", "third"):
        message = failure([output for output in outputs if output.request_id == name]).message
        assert name in message
        assert not any(other in message for other in ("first", "second", "third") if other != name)


def test_answers_of_one_request_are_told_apart(tokenizer: EngineTokenizer) -> None:
    loop, _ = remembering_loop(tokenizer)
    events = watched(loop)
    loop.submit(request("r", random_prompt(20, seed=1), max_tokens=40, n=3))
    loop.step()
    loop.step()
    page, tag = loop._live["r"].answers[2].grants[2]
    loop.pool.tracker.page_tags[page] += 1000
    drain(loop)
    assert [(each.event, each.answer, each.column) for each in events] == [("r/3/2", 2, 2)]
    (told,) = events
    assert (told.expected_tag, told.found_tag, told.last_holders) == (tag, tag + 1000, [holder("r", tag, 2)])


def test_a_preempted_request_s_new_pages_are_known_from_when_it_came_back(tokenizer: EngineTokenizer) -> None:
    loop, _ = remembering_loop(tokenizer, pages=6, prefix_reuse=False)
    events = watched(loop)
    loop.submit(request("first", random_prompt(20, seed=1), max_tokens=20))
    loop.submit(request("second", random_prompt(8, seed=2), max_tokens=30))
    outputs: list[Output] = []
    while not loop.status().preemptions:
        outputs += loop.step()
    preempted = loop.status().steps
    assert loop._live["second"].answers[0].grants == []
    while not loop._live["second"].answers[0].grants:
        outputs += loop.step()
    back = loop.status().steps
    assert back > preempted
    page, tag = loop._live["second"].answers[0].grants[0]
    loop.pool.tracker.page_tags[page] += 1000
    outputs += drain(loop)
    (told,) = events
    now, before = told.last_holders
    assert now == holder("second", tag, back)
    assert (before.request_id, before.tag < tag, before.step < preempted) == ("second", True, True)
    assert len(tokens([output for output in outputs if output.request_id == "first"])) == 20


def test_an_answer_s_later_pages_are_noted_in_the_step_that_needs_them(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer)
    events = watched(loop)
    loop.submit(request("r", [7] * 15, max_tokens=20))
    for _ in range(3):
        loop.step()
    page, tag = loop._live["r"].answers[0].grants[2]  # the 17th token lies there, from the third step on
    loop.pool.tracker.page_tags[page] += 1000
    drain(loop)
    assert events[0].last_holders == [holder("r", tag, 3)]


def test_the_latest_come_first_and_a_few_are_enough() -> None:
    history = PageHistory(10)
    for step in range(1, 21):
        history.begin_step(step)
        history.note(f"r{step}", "shared" if step % 2 else "granted", [Grant(step % 2, step), Grant(9, 100 + step)])
    assert history.last_holders(1) == [holder(f"r{step}", step, step, "shared") for step in (19, 17, 15, 13)]
    assert history.last_holders(0)[0] == holder("r20", 20, 20)
    assert [each.tag for each in history.last_holders(9)] == [120, 119, 118, 117]
    assert history.last_holders(5) == []


def test_whatever_was_noted_the_four_latest_are_told() -> None:
    history = PageHistory(3)
    noted: dict[int, list[Holder]] = {page: [] for page in range(3)}
    random = Random(0)
    for step in range(1, 200):
        history.begin_step(step)
        page, how = random.randrange(3), random.choice(["granted", "shared"])
        tag = random.randrange(1, 2**31)
        history.note(f"r{step}", how, [Grant(page, tag)])
        noted[page].insert(0, holder(f"r{step}", tag, step, how))
        assert all(history.last_holders(each) == holders[:4] for each, holders in noted.items())


def test_the_others_grants_take_nothing_from_a_page() -> None:
    history = PageHistory(10)
    history.begin_step(7)
    history.note("old", "granted", [Grant(3, 1)])
    for step in range(1000):
        history.begin_step(8 + step)
        history.note("new", "granted", [Grant(4, step)])
    assert history.last_holders(3) == [holder("old", 1, 7)]


def test_what_is_remembered_does_not_grow() -> None:
    history = PageHistory(10)
    everywhere = [Grant(page, 2**31 - 1) for page in range(10)]

    def take_memory(times: int) -> int:
        for step in range(times):
            history.begin_step(2**40 + step)
            history.note(f"request {step:10}", "shared", everywhere)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = take_memory(10)
        grown = take_memory(1000) - before
    finally:
        tracemalloc.stop()
    assert grown < 1000, "less than a byte a step"


@pytest.mark.parametrize("page", [-1, 10, 999])
def test_a_page_that_is_not_there_has_no_holder(page: int) -> None:
    history = PageHistory(10)
    history.note("r", "granted", [Grant(page, 1) for page in range(10)])
    assert history.last_holders(page) == []


def test_a_loop_remembers_four_holders_of_every_page_however_long_it_runs(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer, pages=8)
    for number in range(30):
        loop.submit(request(str(number), [7] * 20, max_tokens=2))
        drain(loop)
    for page in range(8):
        holders = loop._integrity.history.last_holders(page)
        assert len(holders) == 4
        assert [each.step for each in holders] == sorted((each.step for each in holders), reverse=True)


def test_with_the_guard_off_nothing_is_remembered(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer, guard="off")
    loop.submit(request("r", [7] * 20))
    drain(loop)
    assert loop._integrity.history is NO_HISTORY
    NO_HISTORY.note("r", "granted", [Grant(0, 1)])
    assert NO_HISTORY.last_holders(0) == []


def test_a_loop_whose_guard_is_off_writes_on_nothing_that_others_share(tokenizer: EngineTokenizer) -> None:
    before = vars(NO_HISTORY).copy()
    loop, _ = scripted_loop(tokenizer, guard="off")
    loop.submit(request("r", [7] * 20, max_tokens=3))
    drain(loop)
    assert loop.status().steps == 3
    assert vars(NO_HISTORY) == before
