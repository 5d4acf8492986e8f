"""Prompts that begin alike share pages, and nothing that comes out changes by it (cases 29 and 30)."""

from __future__ import annotations

import pytest
from driving import drain, failure, request, serve, tokens
from hypothesis import given
from hypothesis import strategies as st
from remembering import expected_tokens, remembering_loop

from roundhouse.serve.engine.prefix_cache import page_key, root_key
from roundhouse.serve.engine.request import Chunk, Request, SamplingParams
from roundhouse.serve.engine.tokenizer import EngineTokenizer


def ask(name: str, prompt: list[int], *, salt: str = "", n: int = 1, count: int = 12, **more: object) -> Request:
    params = SamplingParams(max_tokens=count, ignore_eos=True, n=n)
    return Request(request_id=name, prompt_ids=prompt, sampling=params, cache_salt=salt, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [7, 8, 9, 15, 16, 17, 32])
def test_a_prompt_asked_twice_gets_the_same_tokens_and_computes_only_what_is_new(
    tokenizer: EngineTokenizer, length: int
) -> None:
    loop, runtime = remembering_loop(tokenizer)
    prompt = list(range(3, 3 + length))
    first = serve(loop, ask("first", prompt))["first"]
    run_before = runtime.tokens_run
    again = serve(loop, ask("again", prompt))["again"]
    assert tokens(first) == tokens(again) == expected_tokens(prompt, 12)
    cached = (length - 1) // 8 * 8
    assert [output.cached_tokens for output in again if isinstance(output, Chunk)] == [cached] * 12
    assert runtime.tokens_run - run_before == length - cached + 11
    assert loop.status().cached_tokens == cached


def test_a_conversation_that_goes_on_finds_its_own_answers(tokenizer: EngineTokenizer) -> None:
    loop, _ = remembering_loop(tokenizer)
    prompt = list(range(3, 23))
    answer = tokens(serve(loop, ask("first", prompt, count=20))["first"])
    (last, *_) = reversed(serve(loop, ask("next", prompt + answer + [5, 6, 7]))["next"])
    assert isinstance(last, Chunk)
    assert last.cached_tokens == 32  # 39 of the 40 tokens before were computed: four full pages


def test_salts_never_meet(tokenizer: EngineTokenizer) -> None:
    loop, runtime = remembering_loop(tokenizer)
    prompt = list(range(3, 35))
    for salt in ("a", "b"):
        before = runtime.tokens_run
        serve(loop, ask(salt, prompt, salt=salt, count=1))
        assert runtime.tokens_run - before == 32
    loop.submit(ask("one", prompt, salt="a", count=30))
    loop.submit(ask("two", prompt, salt="b", count=30))
    loop.step()
    pages = [{grant.page for grant in loop._live[name].answers[0].grants} for name in ("one", "two")]
    assert not pages[0] & pages[1]
    drain(loop)


@given(first=st.text(max_size=8), second=st.text(max_size=8), tokens=st.lists(st.integers(0, 2**31 - 1), max_size=8))
def test_keys_of_other_salts_adapters_and_tokens_do_not_collide(first: str, second: str, tokens: list[int]) -> None:
    assert (root_key(first) == root_key(second)) == (first == second)
    assert root_key(first, second) != root_key(first + second) or not second
    assert root_key(first) != page_key(root_key(first), tokens)
    assert page_key(root_key(first), tokens) != page_key(root_key(first), [*tokens, 0])


def test_answers_of_one_request_share_the_pages_of_its_prompt(tokenizer: EngineTokenizer) -> None:
    loop, runtime = remembering_loop(tokenizer)
    prompt = list(range(3, 35))
    outputs = serve(loop, ask("r", prompt, n=3, count=5))["r"]
    for index in range(3):
        mine = [output for output in outputs if isinstance(output, Chunk) and output.index == index]
        assert tokens(mine) == expected_tokens(prompt, 5)
        assert mine[-1].finish_reason == "length"
    assert runtime.tokens_run == 32 + 2 * 8 + 3 * 4  # the last page of the prompt twice more, four tokens of each answer


def test_seeds_of_answers_differ_and_come_again(tokenizer: EngineTokenizer) -> None:
    params = SamplingParams(max_tokens=8, ignore_eos=True, n=3, temperature=5.0, seed=7)
    runs = []
    for _ in range(2):
        loop, _ = remembering_loop(tokenizer)
        outputs = serve(loop, Request(request_id="r", prompt_ids=[3, 4, 5], sampling=params))["r"]
        runs.append([tokens([o for o in outputs if isinstance(o, Chunk) and o.index == index]) for index in range(3)])
    assert runs[0] == runs[1]
    assert len({tuple(answer) for answer in runs[0]}) == 3


def test_a_line_that_is_full_refuses_the_next_and_serves_those_who_wait(tokenizer: EngineTokenizer) -> None:
    loop, _ = remembering_loop(tokenizer, max_batch_size=1, max_waiting=2)
    for number in range(4):
        loop.submit(ask(str(number), [3, 4]))
    outputs = drain(loop)
    for number in range(4):
        mine = [output for output in outputs if output.request_id == str(number)]
        if number < 2:
            assert len(tokens(mine)) == 12
        else:
            assert failure(mine).code == "overloaded"


def test_a_request_ends_when_its_time_is_over_running_or_waiting(tokenizer: EngineTokenizer) -> None:
    now = 100.0
    loop, _ = remembering_loop(tokenizer, max_batch_size=1, clock=lambda: now)
    loop.submit(ask("running", [3, 4], count=60, deadline_s=2.0))
    loop.submit(ask("waiting", [3, 4], count=60, deadline_s=1.0))
    loop.submit(ask("patient", [3, 4]))
    outputs = loop.step() + loop.step()
    now += 1.0
    outputs += loop.step()
    now += 1.0
    outputs += drain(loop)
    by_name = {name: [output for output in outputs if output.request_id == name] for name in ("running", "waiting", "patient")}
    assert failure(by_name["waiting"]).code == failure(by_name["running"]).code == "deadline"
    assert tokens(by_name["running"]) == expected_tokens([3, 4], 3)
    assert len(tokens(by_name["patient"])) == 12


def test_waits_are_counted_from_arrival_and_between_tokens(tokenizer: EngineTokenizer) -> None:
    now = 0.0
    loop, _ = remembering_loop(tokenizer, clock=lambda: now)
    loop.submit(ask("r", [3, 4], count=3))
    for _ in range(3):
        now += 0.2
        loop.step()
    status = loop.status()
    assert (sum(status.ttft.counts), sum(status.inter_token.counts)) == (1, 2)
    assert status.ttft.total == pytest.approx(0.2)
    assert status.inter_token.total == pytest.approx(0.4)
    assert status.inter_token.counts[status.inter_token.bounds.index(0.25)] == 2


def test_a_damaged_page_is_found_by_nobody_again(tokenizer: EngineTokenizer) -> None:
    """The cache lets go of a page whose tag was wrong: the next prompt computes it anew."""
    loop, _ = remembering_loop(tokenizer)
    prompt = list(range(3, 35))
    loop.submit(ask("victim", prompt, count=30))
    loop.step()
    page = loop._live["victim"].answers[0].grants[1].page
    loop.pool.tracker.page_tags[page] += 1000
    assert failure(drain(loop)).code == "page_tag_mismatch"
    again = serve(loop, ask("again", prompt))["again"]
    assert tokens(again) == expected_tokens(prompt, 12)
    assert all(output.cached_tokens == 0 for output in again if isinstance(output, Chunk))


def test_without_reuse_nothing_is_kept(tokenizer: EngineTokenizer) -> None:
    loop, _ = remembering_loop(tokenizer, prefix_reuse=False)
    serve(loop, request("r", list(range(3, 35)), max_tokens=3))
    assert (loop.status().pages_cached, loop.status().pages_free) == (0, 64)
