"""Contents of pages: whoever holds one that changed ends before its step, and nobody else notices.

The runtime's pages hold token ids, and its next token depends on all of them: nothing that changed could be read unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from driving import PAGE_TOKENS, drain, failure, random_prompt, request, tokens
from remembering import expected_tokens, remembering_loop

from roundhouse.serve.engine.request import Chunk, Failure, Output
from roundhouse.serve.engine.tokenizer import EngineTokenizer

Rows = npt.NDArray[np.uint8]
"""uint8 [PAGE_TOKENS, 8]: what a page holds, a token a row."""

PROMPTS = {name: random_prompt(20, seed=seed) for seed, name in enumerate(("a", "victim", "b"), 1)}
"""Two full pages and an open one each."""


class Watched:
    """A loop that checks contents, what came out of it, and who ran in its steps with which pages."""

    def __init__(self, tokenizer: EngineTokenizer, **keys: Any) -> None:
        self.loop, self.runtime = remembering_loop(tokenizer, **{"guard": "tags+content", **keys})
        self.outputs: dict[str, list[Output]] = {}
        self.ran: list[str] = []
        self.used: set[int] = set()
        self._forward = self.runtime.forward
        self.runtime.forward = self._watched  # type: ignore[method-assign]

    def come(self, name: str, prompt: list[int], **sampling: Any) -> None:
        self.outputs[name] = []
        self.loop.submit(request(name, prompt, **{"max_tokens": 25, **sampling}))

    def step(self, steps: int = 1) -> None:
        for _ in range(steps):
            self._take(self.loop.step())
            self.loop.check_integrity()

    def end(self) -> None:
        self._take(drain(self.loop))

    def pages(self, name: str, answer: int = 0) -> list[int]:
        return [grant.page for grant in self.loop._live[name].answers[answer].grants]

    def rows(self, page: int) -> Rows:
        return self.runtime.page_bytes(page).reshape(PAGE_TOKENS, -1)

    def forget_who_ran(self) -> None:
        self.ran.clear()
        self.used.clear()

    def _take(self, outputs: list[Output]) -> None:
        for output in outputs:
            self.outputs[output.request_id].append(output)

    def _watched(self, prepared: Any) -> Any:
        self.ran += [sequence.request_id for sequence, _ in prepared.batch.runs]
        self.used |= set(prepared.page_table[prepared.page_table >= 0].tolist())
        return self._forward(prepared)


def rows_swapped(rows: Rows) -> None:
    rows[[0, 1]] = rows[[1, 0]]


def a_bit_of_the_first_token(rows: Rows) -> None:
    rows[0, 0] ^= 1


def a_bit_of_the_last_slot(rows: Rows) -> None:
    rows[PAGE_TOKENS - 1, 7] ^= 0x80


SPOILS = (rows_swapped, a_bit_of_the_first_token, a_bit_of_the_last_slot)


@pytest.mark.parametrize("reuse", [True, False])
@pytest.mark.parametrize(
    ("spoil", "column"),
    [
        (rows_swapped, 0),
        (rows_swapped, 1),
        (rows_swapped, 2),
        (a_bit_of_the_first_token, 1),
        (a_bit_of_the_first_token, 2),
        (a_bit_of_the_last_slot, 0),
        (a_bit_of_the_last_slot, 2),
    ],
)
def test_a_page_that_changed_ends_exactly_its_holder(
    tokenizer: EngineTokenizer, spoil: Callable[[Rows], None], column: int, reuse: bool
) -> None:
    """The last page is open, and its last slot was not written yet."""
    life = Watched(tokenizer, prefix_reuse=reuse, pages=24)
    for name, prompt in PROMPTS.items():
        life.come(name, prompt)
    life.step(2)
    pages = life.pages("victim")
    spoil(life.rows(pages[column]))
    life.forget_who_ran()
    life.end()

    assert failure(life.outputs["victim"]).code == "page_content_mismatch"
    assert tokens(life.outputs["victim"]) == expected_tokens(PROMPTS["victim"], 2)
    assert set(life.ran) == {"a", "b"}
    for name in ("a", "b"):
        assert tokens(life.outputs[name]) == expected_tokens(PROMPTS[name], 25)
    status = life.loop.status()
    assert (status.content_mismatches, status.tag_mismatches, status.pages_used) == (1, 0, 0)
    assert life.loop.pool._quarantined == set(pages)

    # The same prompt is computed anew, and whoever comes gets other pages.
    life.forget_who_ran()
    life.come("again", PROMPTS["victim"])
    for number in range(3):
        life.come(f"crowd {number}", random_prompt(30, seed=100 + number), max_tokens=40)
    life.end()
    assert tokens(life.outputs["again"]) == expected_tokens(PROMPTS["victim"], 25)
    assert {output.cached_tokens for output in life.outputs["again"] if isinstance(output, Chunk)} == {0}
    for number in range(3):
        assert tokens(life.outputs[f"crowd {number}"]) == expected_tokens(random_prompt(30, seed=100 + number), 40)
    assert life.used == set(range(24)) - set(pages)
    assert life.loop.status().content_mismatches == 1


@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_late_write_into_a_page_that_was_granted_again_ends_its_new_holder(tokenizer: EngineTokenizer, column: int) -> None:
    life = Watched(tokenizer, prefix_reuse=False)
    life.come("gone", random_prompt(24, seed=9), max_tokens=1)
    life.step()
    page = [0, 1, 2][column]
    late = life.rows(page)[3].copy()
    life.loop.pool._free.rotate(3)  # the next who comes gets these pages
    for name in ("victim", "a", "b"):
        life.come(name, PROMPTS[name])
    life.step(2)
    assert life.pages("victim")[column] == page
    life.rows(page)[3] = late
    life.forget_who_ran()
    life.end()
    assert failure(life.outputs["victim"]).code == "page_content_mismatch"
    assert tokens(life.outputs["victim"]) == expected_tokens(PROMPTS["victim"], 2)
    assert set(life.ran) == {"a", "b"}
    for name in ("a", "b"):
        assert tokens(life.outputs[name]) == expected_tokens(PROMPTS[name], 25)


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_write_into_a_page_that_its_holder_has_not_written_yet_harms_nobody(
    tokenizer: EngineTokenizer, spoil: Callable[[Rows], None]
) -> None:
    life = Watched(tokenizer, max_num_tokens=PAGE_TOKENS)
    life.come("a", PROMPTS["a"])
    life.step()
    life.runtime.pages[life.pages("a")[2]] = np.arange(PAGE_TOKENS)
    spoil(life.rows(life.pages("a")[2]))
    life.end()
    assert tokens(life.outputs["a"]) == expected_tokens(PROMPTS["a"], 25)
    assert life.loop.status().content_mismatches == 0


SHARED = random_prompt(28, seed=21)
"""Three full pages, which others find, and an open one, which they do not."""
SHARERS = {
    "two answers": SHARED,
    "same prompt": SHARED,
    "one page alike": SHARED[:PAGE_TOKENS] + random_prompt(20, seed=22),
    "other": random_prompt(28, seed=23),
}


@pytest.mark.parametrize("budget", [64, 3])
@pytest.mark.parametrize(
    ("column", "victims"), [(0, ["two answers", "same prompt", "one page alike"]), (1, ["two answers", "same prompt"])]
)
def test_everyone_who_holds_a_page_that_changed_ends_and_nobody_else(
    tokenizer: EngineTokenizer, column: int, victims: list[str], budget: int
) -> None:
    """With a budget of three tokens not every holder is in the step that finds it; the others end before theirs."""
    life = Watched(tokenizer)
    for name, prompt in SHARERS.items():
        life.come(name, prompt, n=2 if name == "two answers" else 1, max_tokens=60)
        life.step()
    assert life.loop.status().running == 5
    life.loop._scheduler._max_num_tokens = budget
    before = {name: tokens(outputs) for name, outputs in life.outputs.items()}
    held = {name: set(life.pages(name)) for name in SHARERS}
    held["two answers"] |= set(life.pages("two answers", 1))
    (page,) = {life.pages(name)[column] for name in victims} | {life.pages("two answers", 1)[column]}
    rows_swapped(life.rows(page))
    life.forget_who_ran()
    life.end()

    assert not set(life.ran) & set(victims)
    for name in victims:
        assert failure(life.outputs[name]).code == "page_content_mismatch"
        assert tokens(life.outputs[name]) == before[name]
        assert sum(isinstance(output, Failure) for output in life.outputs[name]) == 1
    for name in SHARERS.keys() - set(victims):
        assert tokens(life.outputs[name]) == expected_tokens(SHARERS[name], 60)
    lost = set().union(*(held[name] for name in victims)) - set().union(*(held[name] for name in SHARERS.keys() - set(victims)))
    assert page in lost
    assert life.loop.pool._quarantined == lost

    life.come("again", SHARED)
    life.end()
    assert tokens(life.outputs["again"]) == expected_tokens(SHARED, 25)
    assert page not in life.used
    assert all(o.cached_tokens <= column * PAGE_TOKENS for o in life.outputs["again"] if isinstance(o, Chunk))


def test_one_answer_s_page_ends_its_whole_request_once(tokenizer: EngineTokenizer) -> None:
    life = Watched(tokenizer)
    life.come("two answers", SHARED, n=2)
    life.come("same prompt", SHARED)
    life.step(4)
    open_page = life.pages("two answers", 1)[3]
    assert open_page not in life.pages("two answers", 0)
    a_bit_of_the_first_token(life.rows(open_page))
    life.end()
    assert sum(isinstance(output, Failure) for output in life.outputs["two answers"]) == 1
    assert failure(life.outputs["two answers"]).code == "page_content_mismatch"
    assert tokens(life.outputs["same prompt"]) == expected_tokens(SHARED, 25)
    assert (life.loop.status().content_mismatches, life.loop.status().tag_mismatches) == (1, 0)


def test_a_page_that_changed_in_the_prefix_cache_is_read_by_nobody(tokenizer: EngineTokenizer) -> None:
    life = Watched(tokenizer)
    life.come("first", SHARED)
    life.step()
    page = life.pages("first")[1]
    life.end()
    rows_swapped(life.rows(page))
    life.forget_who_ran()
    life.come("finds it", SHARED)
    life.come("other", PROMPTS["a"])
    life.end()
    assert [output.code for output in life.outputs["finds it"] if isinstance(output, Failure)] == ["page_content_mismatch"]
    assert len(life.outputs["finds it"]) == 1
    assert set(life.ran) == {"other"}
    life.come("again", SHARED)
    life.end()
    assert tokens(life.outputs["again"]) == expected_tokens(SHARED, 25)
    assert page not in life.used


@pytest.mark.parametrize("guard", ["off", "tags"])
def test_below_the_level_no_page_is_read(tokenizer: EngineTokenizer, monkeypatch: pytest.MonkeyPatch, guard: str) -> None:
    life = Watched(tokenizer, guard=guard)
    read: list[int] = []
    monkeypatch.setattr(life.runtime, "page_bytes", read.append)
    life.loop._runtime.page_bytes(-1)
    assert read == [-1]
    for name, prompt in PROMPTS.items():
        life.come(name, prompt, n=2)
    life.step(2)
    life.loop.cancel("b")
    life.end()
    assert read == [-1]
    status = life.loop.status()
    assert (status.guard, status.content_checks, status.content_mismatches) == (guard, 0, 0)


def test_every_written_page_of_a_batch_is_compared_once_a_step(tokenizer: EngineTokenizer) -> None:
    life = Watched(tokenizer)
    life.come("a", PROMPTS["a"], max_tokens=10)
    checks = []
    for _ in range(10):
        life.step()
        checks.append(life.loop.status().content_checks)
    # Nothing is written before the first step; the sixth writes into a fourth page.
    assert np.diff([0, *checks]).tolist() == [0, 3, 3, 3, 3, 3, 4, 4, 4, 4]
    assert life.loop.status().guard == "tags+content"

    life = Watched(tokenizer)
    life.come("r", SHARED, n=2, max_tokens=4)
    life.step(3)
    before = life.loop.status().content_checks
    life.step()
    assert life.loop.status().content_checks - before == 3 + 2  # shared ones, and an open one of each answer


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_page_that_is_being_filled_is_compared_whatever_the_share(
    tokenizer: EngineTokenizer, spoil: Callable[[Rows], None]
) -> None:
    """The step would seal it anew, and the damage with it."""
    life = Watched(tokenizer, guard_sample=1e-9)
    life.loop._integrity._content._draw = np.random.default_rng(0)
    for name, prompt in PROMPTS.items():
        life.come(name, prompt)
    life.step(2)
    spoil(life.rows(life.pages("victim")[2]))
    life.forget_who_ran()
    life.end()
    assert failure(life.outputs["victim"]).code == "page_content_mismatch"
    assert set(life.ran) == {"a", "b"}
    for name in ("a", "b"):
        assert tokens(life.outputs[name]) == expected_tokens(PROMPTS[name], 25)


def test_a_full_page_is_left_to_the_share(tokenizer: EngineTokenizer) -> None:
    life = Watched(tokenizer, guard_sample=1e-9)
    life.loop._integrity._content._draw = np.random.default_rng(0)
    life.come("a", PROMPTS["a"], max_tokens=10)
    checks = []
    for _ in range(10):
        life.step()
        checks.append(life.loop.status().content_checks)
    # The page that the step before left open, if it did: the fifth fills one.
    assert np.diff([0, *checks]).tolist() == [0, 1, 1, 1, 1, 0, 1, 1, 1, 1]


def test_a_sample_finds_it_in_the_loop_in_time_and_then_every_holder_ends(tokenizer: EngineTokenizer) -> None:
    life = Watched(tokenizer, guard_sample=0.2)
    life.loop._integrity._content._draw = np.random.default_rng(4)
    for name, prompt in SHARERS.items():
        life.come(name, prompt, max_tokens=90)
        life.step()
    assert life.loop.status().running == 4
    life.loop._scheduler._max_num_tokens = 3
    page = life.pages("same prompt")[1]
    rows_swapped(life.rows(page))
    while not life.loop.status().content_mismatches and life.loop.has_work:
        life.step()
    life.forget_who_ran()
    ended = [name for name in SHARERS if isinstance(life.outputs[name][-1], Failure)]
    life.end()
    assert ended
    assert not set(life.ran) & {"two answers", "same prompt"}
    for name in ("two answers", "same prompt"):
        assert failure(life.outputs[name]).code == "page_content_mismatch"
    for name in ("one page alike", "other"):
        assert tokens(life.outputs[name]) == expected_tokens(SHARERS[name], 90)
