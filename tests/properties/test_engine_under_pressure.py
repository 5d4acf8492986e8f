"""The whole loop under random use with the pool exactly exhausted (cases 24, 28 to 30, 34, 35): all get what is theirs.

The runtime answers from what it reads in pages, so any mix-up of pages, prefixes, salts or chunks changes a token.
"""

from __future__ import annotations

from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from remembering import expected_tokens, remembering_loop

from roundhouse.serve.engine.request import Chunk, Failure, Request, SamplingParams
from roundhouse.serve.engine.tokenizer import EngineTokenizer, load_tokenizer

PAGES = 9
"""Of eight tokens each: three middling requests fill the pool."""


class EngineMachine(RuleBasedStateMachine):
    """Clients come, go and wait; everyone who stays gets the tokens that the prompt alone decides."""

    tokenizer: ClassVar[EngineTokenizer]
    """Set by :func:`test_everybody_gets_exactly_what_is_theirs`: fixtures do not reach rules."""

    @initialize(batch=st.integers(1, 4), budget=st.integers(4, 40), reuse=st.booleans(), guard=st.sampled_from(["tags", "off"]))
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
        self.requests: dict[str, Request] = {}
        self.got: dict[str, dict[int, list[int]]] = {}
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
        prompt = [3 + family] * length
        name = f"r{self.number}"
        self.number += 1
        request = Request(
            request_id=name,
            prompt_ids=prompt,
            sampling=SamplingParams(max_tokens=count, ignore_eos=True, n=n),
            cache_salt=salt,
            priority=priority,
            deadline_s=deadline,
        )
        self.requests[name], self.got[name] = request, {index: [] for index in range(n)}
        self.loop.submit(request)

    @rule(length=st.sampled_from([0, 72, 73, 127, 128, 500]))
    def come_with_an_impossible_prompt(self, length: int) -> None:
        name = f"bad{self.number}"
        self.number += 1
        self.requests[name] = Request(request_id=name, prompt_ids=[9] * length, sampling=SamplingParams(ignore_eos=True))
        self.got[name] = {0: []}
        self.loop.submit(self.requests[name])

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        live = sorted(set(self.requests) - set(self.ended))
        if live:
            self.loop.cancel(data.draw(st.sampled_from(live)))

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
        assert status.tag_mismatches == 0

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

    def _take(self) -> None:
        for output in self.loop.step():
            name = output.request_id
            assert name not in self.ended, "a request that has ended says something"
            request = self.requests[name]
            if isinstance(output, Failure):
                assert output.code in ("invalid_request", "overloaded", "deadline")
                self.ended[name] = output.code
                continue
            self._take_chunk(request, output)

    def _take_chunk(self, request: Request, chunk: Chunk) -> None:
        mine = self.got[request.request_id][chunk.index]
        mine += chunk.token_ids
        prompt = request.prompt_ids or []
        assert mine == expected_tokens(prompt, len(mine))
        assert chunk.completion_tokens == len(mine)
        if chunk.finish_reason is None:
            return
        del self.got[request.request_id][chunk.index]
        if chunk.finish_reason == "length":
            room = PAGES * 8 + 1 - len(prompt)
            assert len(mine) == min(request.sampling.max_tokens, 128 - len(prompt), room)
        if not self.got[request.request_id]:
            self.ended[request.request_id] = chunk.finish_reason


def test_everybody_gets_exactly_what_is_theirs(tiny_model) -> None:
    EngineMachine.tokenizer = load_tokenizer(tiny_model("llama"))
    run_state_machine_as_test(EngineMachine, settings=settings(max_examples=30, stateful_step_count=40, deadline=None))
