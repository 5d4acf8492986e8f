"""The check of tags and counts: it looks at what was prepared for attention, and at all of what attention reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from driving import PAGE_TOKENS, drain, failure, random_prompt, request, tokens
from guard_tables import Tables, tables
from hypothesis import given
from hypothesis import strategies as st
from remembering import expected_tokens, remembering_loop

from roundhouse.plugins.guard import TorchPageGuard
from roundhouse.plugins.page_tag import PageTagTracker, first_bad_columns
from roundhouse.serve.engine.integrity import IntegrityCheck, IntegrityEvent, Mismatch, PageHistory
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.request import Output
from roundhouse.serve.engine.runtime import PreparedBatch
from roundhouse.serve.engine.tokenizer import EngineTokenizer

ON = ["tags", "tags+content"]
PROMPTS = {"a": random_prompt(20, seed=1), "victim": random_prompt(20, seed=2), "long": random_prompt(36, seed=3)}
"""Three pages, three pages, and five: the table has five columns, two of which the victim does not use."""


@st.composite
def prepared_batches(draw: st.DrawFn) -> tuple[Tables, list[int]]:
    inputs = draw(tables())
    columns = inputs[0].shape[1]
    lengths = st.integers(0, (columns + 1) * PAGE_TOKENS)
    return inputs, draw(st.lists(lengths, min_size=len(inputs[0]), max_size=len(inputs[0])))


@given(prepared_batches())
def test_a_row_runs_when_all_that_it_reads_was_compared_and_agrees(batch: tuple[Tables, list[int]]) -> None:
    (table, count, expected, page_tags), context_len = batch
    tracker = PageTagTracker(len(page_tags))
    tracker.page_tags[:] = page_tags
    check = IntegrityCheck(tracker, TorchPageGuard(), page_tokens=PAGE_TOKENS, history=PageHistory(0))
    prepared = PreparedBatch(
        page_table=torch.from_numpy(table),
        page_count=torch.from_numpy(count),
        expected_tags=torch.from_numpy(expected),
        query_start=torch.arange(len(table) + 1, dtype=torch.int32),
        context_len=torch.tensor(context_len, dtype=torch.int32),
    )
    right = []
    for row, column in enumerate(first_bad_columns(table, count, expected, page_tags).tolist()):
        counted = int(count[row])
        if column < 0 and counted * PAGE_TOKENS < context_len[row]:
            column = counted
        if column >= 0:
            right.append(Mismatch(row, column, "tag" if column < min(counted, table.shape[1]) else "count"))
    assert check.bad_rows(prepared) == right
    assert check.checks == 1


Damage = Callable[[PreparedBatch, int], None]
"""Damages what was prepared for a row."""


def serve_with_damage(
    tokenizer: EngineTokenizer, monkeypatch: pytest.MonkeyPatch, damage: Damage, **keys: Any
) -> tuple[EngineLoop, dict[str, list[Output]], list[IntegrityEvent]]:
    """Serve the three; in the third step something happens to what the runtime prepared for the victim, not to the batch."""
    loop, runtime = remembering_loop(tokenizer, max_num_tokens=128, **keys)
    events: list[IntegrityEvent] = []
    loop._on_integrity_event = events.append
    prepare, batches = runtime.prepare, []

    def prepare_and_damage(batch: Any) -> Any:
        prepared = prepare(batch)
        fields = ("page_table", "page_count", "expected_tags", "context_len")
        prepared = dataclasses.replace(prepared, **{name: getattr(prepared, name).clone() for name in fields})
        rows = [row for row, (sequence, _) in enumerate(batch.runs) if sequence.request_id == "victim"]
        if rows and loop._steps == 3:
            batches.append(batch)
            before = [array.copy() for array in (batch.page_table, batch.page_count, batch.expected_tags, batch.context_len)]
            damage(prepared, rows[0])
            for was, name in zip(before, fields, strict=True):
                np.testing.assert_array_equal(getattr(batch, name), was)
        return prepared

    monkeypatch.setattr(runtime, "prepare", prepare_and_damage)
    for name, prompt in PROMPTS.items():
        loop.submit(request(name, prompt, max_tokens=12))
    outputs = drain(loop)
    assert len(batches) == 1
    return loop, {name: [output for output in outputs if output.request_id == name] for name in PROMPTS}, events


def setting(name: str, value: Any, column: int | None = None) -> Damage:
    def damage(prepared: PreparedBatch, row: int) -> None:
        getattr(prepared, name)[(row,) if column is None else (row, column)] = value

    return damage


DAMAGE: dict[str, tuple[Damage, str, int, int | None]] = {
    "a count that leaves the last page out": (setting("page_count", 2), "count", 2, 2),
    "a count that leaves all pages out": (setting("page_count", 0), "count", 0, 0),
    "a count below zero": (setting("page_count", -1), "count", 0, 0),
    "the least count": (setting("page_count", -(2**31)), "count", 0, 0),
    "a count of pages that it does not have": (setting("page_count", 5), "tag", 3, -1),
    "a count above the columns": (setting("page_count", 6), "tag", 3, -1),
    "the largest count": (setting("page_count", 2**31 - 1), "tag", 3, -1),
    "a length that its pages do not hold": (setting("context_len", 25), "count", 3, -1),
    "a length that no table holds": (setting("context_len", 2**31 - 1), "count", 3, -1),
    "no page": (setting("page_table", -1, 1), "tag", 1, -1),
    "a page that there is not": (setting("page_table", 64, 1), "tag", 1, 64),
    "another tag": (setting("expected_tags", 999, 2), "tag", 2, 2),
    "no tag": (setting("expected_tags", 0, 0), "tag", 0, 0),
}
"""What happens, which kind it is, the first bad column, and the page that is named: the victim's own of this column, a
number that is no page, or −1 for a cell without one."""


@pytest.mark.parametrize("guard", ON)
@pytest.mark.parametrize("what", DAMAGE)
def test_what_was_prepared_is_what_is_checked(
    tokenizer: EngineTokenizer, monkeypatch: pytest.MonkeyPatch, what: str, guard: str
) -> None:
    damage, kind, column, page = DAMAGE[what]
    loop, outputs, (event,) = serve_with_damage(tokenizer, monkeypatch, damage, guard=guard)
    assert failure(outputs["victim"]).code == "page_tag_mismatch"
    assert tokens(outputs["victim"]) == expected_tokens(PROMPTS["victim"], 2)
    for name in ("a", "long"):
        assert tokens(outputs[name]) == expected_tokens(PROMPTS[name], 12)
    assert (event.kind, event.column, event.step, event.request_id) == (kind, column, 3, "victim")
    own = {0: 3, 1: 4, 2: 5}  # the victim is the second to be granted three pages
    assert event.page == own.get(page, page)
    assert (event.found_tag is None) == (page not in own)
    status = loop.status()
    assert (status.tag_mismatches, status.content_mismatches, status.pages_quarantined) == (1, 0, 3)
    assert status.tag_checks == status.steps + 1


def test_a_row_with_a_page_in_every_column_may_have_a_count_that_is_too_large(
    tokenizer: EngineTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then there is no cell to name."""
    loop, runtime = remembering_loop(tokenizer)
    events: list[IntegrityEvent] = []
    loop._on_integrity_event = events.append
    prepare = runtime.prepare

    def prepare_and_damage(batch: Any) -> Any:
        prepared = prepare(batch)
        rows = [row for row, (sequence, _) in enumerate(batch.runs) if sequence.request_id == "long"]
        prepared.page_count[rows] = 6
        return prepared

    monkeypatch.setattr(runtime, "prepare", prepare_and_damage)
    for name, prompt in PROMPTS.items():
        loop.submit(request(name, prompt, max_tokens=4))
    outputs = drain(loop)
    assert failure([output for output in outputs if output.request_id == "long"]).code == "page_tag_mismatch"
    for name in ("a", "victim"):
        assert tokens([o for o in outputs if o.request_id == name]) == expected_tokens(PROMPTS[name], 4)
    (event,) = events
    assert (event.kind, event.column, event.page, event.expected_tag, event.found_tag) == ("count", 5, None, 0, None)
    assert event.last_holders == []


def test_a_count_may_leave_out_pages_that_the_step_does_not_read(
    tokenizer: EngineTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of three chunks of a prompt reads one page of three."""
    loop, runtime = remembering_loop(tokenizer, max_num_tokens=PAGE_TOKENS)
    prepare, counts = runtime.prepare, []

    def prepare_and_damage(batch: Any) -> Any:
        prepared = prepare(batch)
        counts.append(prepared.page_count.tolist())
        if loop._steps == 1:
            prepared.page_count[:] = 1
        return prepared

    monkeypatch.setattr(runtime, "prepare", prepare_and_damage)
    loop.submit(request("a", PROMPTS["a"], max_tokens=4))
    assert tokens(drain(loop)) == expected_tokens(PROMPTS["a"], 4)
    assert counts[0] == [3]
    assert loop.status().tag_mismatches == 0


@pytest.mark.parametrize("guard", ON)
def test_several_rows_are_dropped_at_once_and_what_is_left_is_checked_again(
    tokenizer: EngineTokenizer, monkeypatch: pytest.MonkeyPatch, guard: str
) -> None:
    def damage(prepared: PreparedBatch, row: int) -> None:
        prepared.page_count[:] = torch.tensor([2, 2, 5])  # both short ones; `long` is the last

    loop, outputs, events = serve_with_damage(tokenizer, monkeypatch, damage, guard=guard)
    assert {event.request_id for event in events} == {"a", "victim"}
    for name in ("a", "victim"):
        assert failure(outputs[name]).code == "page_tag_mismatch"
        assert tokens(outputs[name]) == expected_tokens(PROMPTS[name], 2)
    assert tokens(outputs["long"]) == expected_tokens(PROMPTS["long"], 12)
    assert (loop.status().tag_checks, loop.status().steps, loop.status().tag_mismatches) == (13, 12, 2)


def test_a_batch_of_which_nothing_is_left_is_not_run(tokenizer: EngineTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    def damage(prepared: PreparedBatch, row: int) -> None:
        prepared.page_count[:] = 0

    loop, outputs, events = serve_with_damage(tokenizer, monkeypatch, damage)
    assert len(events) == 3
    for name, prompt in PROMPTS.items():
        assert failure(outputs[name]).code == "page_tag_mismatch"
        assert tokens(outputs[name]) == expected_tokens(prompt, 2)
    assert (loop.status().tag_checks, loop.status().steps, loop.status().tokens_out) == (3, 3, 6)
