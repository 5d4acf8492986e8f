"""The whole loop under random use with the pool exactly exhausted: all get what is theirs, each in its turn.

The runtime answers from what it reads in pages, so any mix-up of pages, prefixes or chunks changes a token. What changes none
is checked by itself: how full steps are, who is admitted and preempted, and whose pages a prompt may have found.
"""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from random import Random
from typing import Any, ClassVar

import pytest
from driving import PAGE_TOKENS
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from page_books import kept, told
from remembering import expected_tokens, remembering_loop

from roundhouse.serve.engine.request import Chunk, Failure, Request, SamplingParams
from roundhouse.serve.engine.sequence import Sequence
from roundhouse.serve.engine.tokenizer import EngineTokenizer, load_tokenizer

PAGES = 9
"""Of eight tokens each: three middling requests fill the pool."""


class EngineMachine(RuleBasedStateMachine):
    """Clients come, go and wait; everyone who stays gets the tokens that the prompt alone decides."""

    tokenizer: ClassVar[EngineTokenizer]
    """Set by the fixture ``machine``: fixtures do not reach rules."""

    @initialize(
        batch=st.integers(1, 4),
        budget=st.integers(4, 40),
        reuse=st.sampled_from([True, True, False]),
        guard=st.sampled_from(["tags+content", "tags", "off"]),
    )
    def start(self, batch: int, budget: int, reuse: bool, guard: str) -> None:
        self.now = 0.0
        self.loop, self.runtime = remembering_loop(
            self.tokenizer,
            clock=lambda: self.now,
            pages=PAGES,
            max_batch_size=batch,
            max_num_tokens=budget,
            prefix_reuse=reuse,
            guard=guard,  # type: ignore[arg-type]
            max_waiting=6,
        )
        self.batch, self.budget, self.reuse = batch, budget, reuse
        self.ran: list[Sequence] = []
        forward = self.runtime.forward
        self.runtime.forward = lambda prepared: forward(self._checked(prepared))  # type: ignore[method-assign]
        self.requests: dict[str, Request] = {}
        self.got: dict[str, dict[int, list[int]]] = {}
        self.texts: list[tuple[Request, list[int]]] = []
        """Prompt and tokens of every answer there has been."""
        self.ended: dict[str, str] = {}
        self.number = 0

    @rule(
        family=st.integers(0, 2),
        length=st.integers(1, 60),
        count=st.integers(1, 30),
        salt=st.sampled_from(["", "a"]),
        n=st.sampled_from([1, 1, 1, 2, 3]),
        priority=st.sampled_from([0, 0, 1]),
        deadline=st.sampled_from([None, None, 5.0]),
    )
    def come(self, family: int, length: int, count: int, salt: str, n: int, priority: int, deadline: float | None) -> None:
        """Prompts of one family begin alike."""
        sampling = SamplingParams(max_tokens=count, ignore_eos=True, n=n)
        self._submit([3 + family] * length, sampling, cache_salt=salt, priority=priority, deadline_s=deadline)

    @rule(length=st.sampled_from([0, 72, 73, 127, 128, 500]))
    def come_with_a_prompt_at_the_limits(self, length: int) -> None:
        """Those of 73 tokens and more do not fit the pool."""
        self._submit([9] * length, SamplingParams(ignore_eos=True))

    @rule(which=st.integers(0, 99))
    def leave(self, which: int) -> None:
        live = sorted(set(self.requests) - set(self.ended))
        if live:
            self.loop.cancel(live[which % len(live)])

    @rule(steps=st.integers(1, 12), seconds=st.sampled_from([0.0, 0.5]))
    def step(self, steps: int, seconds: float) -> None:
        for _ in range(steps):
            self.now += seconds
            self._take()

    @precondition(lambda self: self.loop.status().running == 0)
    @rule()
    def forget(self) -> None:
        self.loop.forget_prefixes()
        assert self.loop.status().pages_free == PAGES

    @invariant()
    def books_are_right(self) -> None:
        if not hasattr(self, "loop"):
            return
        self.loop.check_integrity()
        status = self.loop.status()
        assert status.pages_free + status.pages_used + status.pages_cached == PAGES
        assert (status.tag_mismatches, status.content_mismatches) == (0, 0)
        pages = told(self.loop.page_holders())
        assert pages == kept(self.loop._scheduler)
        states = Counter(page.state for page in pages)
        assert (states["free"], states["quarantined"]) == (status.pages_free, status.pages_quarantined)
        assert sum(page.prefix_cache and not page.requests for page in pages) == status.pages_cached

    def teardown(self) -> None:
        """Everybody who is still there ends, and every page comes back."""
        if not hasattr(self, "loop"):
            return
        for _ in range(3000):
            if not self.loop.has_work:
                break
            self._take()
            self.loop.check_integrity()
        assert not self.loop.has_work, "somebody waits for ever"
        status = self.loop.status()
        assert (status.running, status.waiting, status.pages_used) == (0, 0, 0)
        self.loop.forget_prefixes()
        assert self.loop.status().pages_free == PAGES
        assert set(self.ended) == set(self.requests)

    def _submit(self, prompt: list[int], sampling: SamplingParams, **more: Any) -> None:
        name = str(self.number)
        self.number += 1
        request = Request(request_id=name, prompt_ids=prompt, sampling=sampling, **more)
        self.requests[name], self.got[name] = request, {index: list(prompt) for index in range(sampling.n)}
        self.texts += [(request, text) for text in self.got[name].values()]
        self.loop.submit(request)

    def _take(self) -> None:
        scheduler, self.ran = self.loop._scheduler, []
        waited, had_run = list(scheduler.waiting), list(scheduler.running)
        outputs = self.loop.step()
        self._check_turns(waited, had_run)
        for output in outputs:
            name = output.request_id
            assert name not in self.ended, "a request that has ended says something"
            request = self.requests[name]
            if isinstance(output, Failure):
                assert output.code in ("invalid_request", "overloaded", "deadline")
                self.ended[name] = output.code
                continue
            self._take_chunk(request, output)

    def _take_chunk(self, request: Request, chunk: Chunk) -> None:
        prompt, text = request.prompt_ids or [], self.got[request.request_id][chunk.index]
        if len(text) == len(prompt):
            assert chunk.cached_tokens <= self._most_cached(request)
        text += chunk.token_ids
        count = len(text) - len(prompt)
        assert text == prompt + expected_tokens(prompt, count)
        assert chunk.completion_tokens == count
        if chunk.finish_reason is None:
            return
        del self.got[request.request_id][chunk.index]
        if chunk.finish_reason == "length":
            room = PAGES * PAGE_TOKENS + 1 - len(prompt)
            assert count == min(request.sampling.max_tokens, 128 - len(prompt), room)
        if not self.got[request.request_id]:
            self.ended[request.request_id] = chunk.finish_reason

    def _checked(self, prepared: Any) -> Any:
        """A batch that is about to run."""
        counts = [count for _, count in prepared.batch.runs]
        assert 0 < len(counts) <= self.batch
        assert min(counts) > 0
        assert sum(counts) == len(prepared.batch.token_ids) <= self.budget
        self.ran = [sequence for sequence, _ in prepared.batch.runs]
        return prepared

    def _check_turns(self, waited: list[Sequence], had_run: list[Sequence]) -> None:
        """Nobody is admitted before somebody who waits and could start, and the last in order is who makes room."""
        waiting, running = self.loop._scheduler.waiting, self.loop._scheduler.running
        passed_over = [each for each in waiting if each.index == 0]  # others may have had to wait for their prompt's pages
        for admitted in set(self.ran) & set(waited):
            assert all(self._turn(admitted) < self._turn(each) for each in passed_over)
        for preempted in set(waiting) & set(had_run):
            assert all(self._turn(kept) < self._turn(preempted) for kept in set(running) & set(had_run))

    def _turn(self, sequence: Sequence) -> tuple[int, int, int]:
        return self.requests[sequence.request_id].priority, int(sequence.request_id), sequence.index

    def _most_cached(self, request: Request) -> int:
        """Tokens of the prompt in full pages that others of the same salt, or its own other answers, may have left."""
        prompt = request.prompt_ids or []
        known = [
            sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(prompt[:-1], text, strict=False)))
            for other, text in self.texts
            if other.cache_salt == request.cache_salt and (other is not request or request.sampling.n > 1)
        ]
        return max(known, default=0) // PAGE_TOKENS * PAGE_TOKENS if self.reuse else 0


@pytest.fixture(scope="module")
def machine(tiny_model: Any) -> type[EngineMachine]:
    EngineMachine.tokenizer = load_tokenizer(tiny_model("llama"))
    return EngineMachine


def test_everybody_gets_exactly_what_is_theirs(machine: type[EngineMachine]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=30, stateful_step_count=40))


@pytest.mark.parametrize("guard", ["tags+content", "tags", "off"])
@pytest.mark.parametrize("reuse", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_so_they_do_in_a_crowd(machine: type[EngineMachine], guard: str, reuse: bool, seed: int) -> None:
    """Hypothesis tries what is odd; here the pool is full all the time."""
    chosen, life = Random(seed), machine()
    life.start(batch=chosen.randint(2, 4), budget=chosen.randint(4, 40), reuse=reuse, guard=guard)
    for _ in range(100):
        life.come(
            family=chosen.randint(0, 1),
            length=chosen.randint(1, 45),
            count=chosen.randint(1, 40),
            salt=chosen.choice(("", "a", "b")),
            n=chosen.choice((1, 1, 1, 2, 3)),
            priority=chosen.choice((0, 0, 1)),
            deadline=chosen.choice((None, None, None, 10.0)),
        )
        life.step(steps=chosen.randint(0, 12), seconds=0.1)
        if chosen.random() < 0.2:
            life.leave(chosen.randrange(100))
        life.books_are_right()
    life.teardown()
    status = life.loop.status()
    assert status.preemptions > 4
    assert (status.cached_tokens > 0) is reuse
    assert (status.content_checks > 1000) is (guard == "tags+content")
