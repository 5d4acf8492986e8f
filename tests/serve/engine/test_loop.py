"""The loop with a scripted runtime: ends of requests, bad requests, cancels, tags and counters."""

from __future__ import annotations

import dataclasses
import logging
import math
import random

import numpy as np
import pytest
from driving import MAX_SEQ_LEN, drain, failure, request, scripted_loop, serve, text, tokens
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from roundhouse.errors import ServeError
from roundhouse.plugins.page_tag import NullTracker
from roundhouse.serve.engine.request import Chunk, Request, SamplingParams
from roundhouse.serve.engine.tokenizer import EngineTokenizer

EOS = 2


def letters(tokenizer: EngineTokenizer, text: str) -> list[int]:
    return [tokenizer.backend.token_to_id(letter) for letter in text]


def test_a_request_streams_a_chunk_a_token_and_ends_with_length(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer)
    outputs = serve(loop, request("r", [300, 301, 302], max_tokens=4))["r"]
    assert [output.token_ids for output in outputs] == [[303], [304], [305], [306]]
    assert [output.completion_tokens for output in outputs] == [1, 2, 3, 4]
    assert [output.finish_reason for output in outputs] == [None, None, None, "length"]
    assert {output.prompt_tokens for output in outputs} == {3}
    assert text(outputs) == tokenizer.decode([303, 304, 305, 306])


def test_an_end_of_sequence_token_stops_and_names_itself(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer, follow={40: 41, 41: EOS})
    outputs = serve(loop, request("r", [40], max_tokens=9, ignore_eos=False), request("on", [40], max_tokens=3))
    assert tokens(outputs["r"]) == [41, EOS]
    assert (outputs["r"][-1].finish_reason, outputs["r"][-1].stop_reason) == ("stop", str(EOS))
    assert text(outputs["r"]) == tokenizer.decode([41])
    assert len(tokens(outputs["on"])) == 3


def test_a_stop_string_ends_the_text_before_it(tokenizer: EngineTokenizer) -> None:
    x, a, b, z = letters(tokenizer, "xabz")
    loop, _ = scripted_loop(tokenizer, follow={x: a, a: b, b: z, z: x})
    outputs = serve(loop, request("r", [z], max_tokens=20, stop=("ab",)))["r"]
    assert text(outputs) == "x"
    assert [output.text for output in outputs] == ["x", "", ""]
    assert (outputs[-1].finish_reason, outputs[-1].stop_reason) == ("stop", "ab")


def test_what_was_held_for_a_stop_string_comes_out_at_the_end(tokenizer: EngineTokenizer) -> None:
    x, a, b = letters(tokenizer, "xab")
    loop, _ = scripted_loop(tokenizer, follow={x: a})
    outputs = serve(loop, request("r", [x], max_tokens=1, stop=("ab",)))["r"]
    assert (text(outputs), outputs[-1].finish_reason) == ("a", "length")
    loop, _ = scripted_loop(tokenizer, follow={x: a, a: b})
    outputs = serve(loop, request("r", [x], max_tokens=2, stop=("ab",)))["r"]
    assert (text(outputs), outputs[-1].finish_reason) == ("", "stop")


def test_no_tokens_asked_for_none_given(tokenizer: EngineTokenizer) -> None:
    loop, runtime = scripted_loop(tokenizer)
    (output,) = serve(loop, request("r", [5, 6], max_tokens=0))["r"]
    assert output == Chunk(request_id="r", text="", token_ids=[], prompt_tokens=2, completion_tokens=0, finish_reason="length")
    assert runtime.forwards == []


def test_generation_is_capped_at_the_model_s_length(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer)
    outputs = serve(loop, request("r", [5] * (MAX_SEQ_LEN - 3), max_tokens=10**9))["r"]
    assert len(tokens(outputs)) == 3
    assert outputs[-1].finish_reason == "length"


BAD = {
    "max_tokens": ({"max_tokens": -1}, "max_tokens is -1"),
    "temperature": ({"temperature": -0.1}, "temperature is -0.1"),
    "temperature nan": ({"temperature": math.nan}, "temperature is nan"),
    "temperature inf": ({"temperature": math.inf}, "temperature is inf"),
    "top_p 0": ({"top_p": 0.0}, "top_p is 0.0"),
    "top_p 1.1": ({"top_p": 1.1}, "top_p is 1.1"),
    "top_p nan": ({"top_p": math.nan}, "top_p is nan"),
    "top_k": ({"top_k": -1}, "top_k is -1"),
    "seed -1": ({"seed": -1}, "seed is -1; it must be in 0..2**64 - 1"),
    "seed 2**64": ({"seed": 2**64}, "seed is 18446744073709551616"),
    "stop": ({"stop": ("x", "")}, "stop string is empty"),
}


@pytest.mark.parametrize(("sampling", "message"), BAD.values(), ids=BAD)
def test_bad_parameters_end_that_request_only(tokenizer: EngineTokenizer, sampling: dict[str, object], message: str) -> None:
    loop, _ = scripted_loop(tokenizer)
    outputs = serve(loop, request("good", [7]), request("bad", [7], **sampling))
    assert failure(outputs["bad"]).code == "invalid_request"
    assert message in failure(outputs["bad"]).message
    assert len(tokens(outputs["good"])) == 16


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Request(request_id="bad"), "the prompt is empty"),
        (Request(request_id="bad", prompt=""), "the prompt is empty"),
        (Request(request_id="bad", prompt_ids=[]), "the prompt is empty"),
        (Request(request_id="bad", prompt="x", prompt_ids=[5]), "exclude each other"),
        (Request(request_id="bad", prompt_ids=[5, 512]), r"token id 512 is not in 0..511"),
        (Request(request_id="bad", prompt_ids=[-1]), r"token id -1 is not in 0..511"),
        (Request(request_id="bad", prompt_ids=[5] * MAX_SEQ_LEN), "has 128 tokens; this engine takes at most 127 of 128"),
        (Request(request_id="bad", prompt_ids=[5] * 500), "has 500 tokens"),
    ],
)
def test_bad_prompts_end_that_request_only(tokenizer: EngineTokenizer, bad: Request, message: str) -> None:
    loop, _ = scripted_loop(tokenizer)
    outputs = serve(loop, request("good", [7]), bad)
    assert failure(outputs["bad"]).code == "invalid_request"
    assert message in failure(outputs["bad"]).message
    assert len(tokens(outputs["good"])) == 16


@pytest.mark.parametrize("length", [MAX_SEQ_LEN - 1, MAX_SEQ_LEN - 2])
def test_the_longest_prompts_still_get_a_token(tokenizer: EngineTokenizer, length: int) -> None:
    loop, _ = scripted_loop(tokenizer)
    assert len(tokens(serve(loop, request("r", [5] * length))["r"])) == MAX_SEQ_LEN - length


@pytest.mark.parametrize(("prompt", "new"), [(1, 32), (30, 3), (31, 2), (32, 1)])
def test_an_answer_is_capped_at_what_the_pool_holds(tokenizer: EngineTokenizer, prompt: int, new: int) -> None:
    loop, _ = scripted_loop(tokenizer, pages=4)
    for asked in (new, new + 1, 10**9):
        outputs = serve(loop, request("r", [5] * prompt, max_tokens=asked))["r"]
        assert (len(tokens(outputs)), outputs[-1].finish_reason) == (new, "length")


def test_only_a_prompt_larger_than_the_pool_is_refused(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer, pages=4)
    outputs = serve(loop, request("large", [5] * 33, max_tokens=1), request("fits", [5] * 32, max_tokens=1))
    assert failure(outputs["large"]).code == "invalid_request"
    assert "has 33 tokens; this engine takes at most the 32 that its KV pool holds" in failure(outputs["large"]).message
    assert len(tokens(outputs["fits"])) == 1


def test_quarantined_pages_shorten_answers_and_do_not_refuse_prompts_as_wrong(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer, pages=4)
    loop.submit(request("victim", [7] * 12, max_tokens=5))
    loop.step()
    inject_stale_tag(loop, "victim")
    drain(loop)
    assert loop.status().pages_quarantined == 2
    outputs = serve(loop, request("fits", [5] * 10, max_tokens=100), request("large", [5] * 20, max_tokens=100))
    assert len(tokens(outputs["fits"])) == 7
    assert failure(outputs["large"]).code == "unavailable"


def test_an_id_in_use_is_refused_and_the_live_request_goes_on(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer)
    loop.submit(request("r", [7], max_tokens=3))
    loop.submit(request("r", [9], max_tokens=3))
    first, *rest = drain(loop)
    assert "in use" in failure([first]).message
    assert tokens(rest) == [8, 9, 10]
    assert tokens(serve(loop, request("r", [9], max_tokens=1))["r"]) == [10]


def test_cancel_gives_pages_back_at_once(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer, pages=16, max_batch_size=1)
    loop.submit(request("running", [7] * 20, max_tokens=50))
    loop.submit(request("waiting", [7] * 20, max_tokens=50))
    loop.step()
    assert (loop.status().running, loop.status().waiting, loop.status().pages_used) == (1, 1, 3)
    loop.cancel("waiting")
    loop.cancel("running")
    loop.cancel("running")
    loop.cancel("never seen")
    assert loop.status().pages_free == 16
    ends = drain(loop)
    assert [(end.request_id, end.finish_reason) for end in ends] == [("waiting", "cancelled"), ("running", "cancelled")]
    assert not loop.has_work


def test_a_burst_of_cancels_leaves_every_page_free(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer, pages=40)
    chosen = random.Random(0)
    for number in range(200):
        loop.submit(request(str(number), [7] * chosen.randint(1, 60), max_tokens=chosen.randint(1, 60)))
    for number in chosen.sample(range(200), 100):
        loop.cancel(str(number))
        loop.step()
        loop.check_integrity()
    drain(loop)
    assert loop.status().pages_free == 40
    assert loop.status().running == loop.status().waiting == 0


def inject_stale_tag(loop: object, request_id: str, column: int = 0) -> int:
    page = loop._live[request_id].answers[0].grants[column].page  # type: ignore[attr-defined]
    loop.pool.tracker.page_tags[page] += 1000  # type: ignore[attr-defined]
    return page


@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_stale_tag_ends_exactly_that_request(
    tokenizer: EngineTokenizer, caplog: pytest.LogCaptureFixture, column: int
) -> None:
    loop, runtime = scripted_loop(tokenizer)
    prompts = {name: [start] * 20 for name, start in (("a", 7), ("victim", 90), ("b", 200))}
    expected = serve(loop, *(request(name, prompt, max_tokens=25) for name, prompt in prompts.items()))
    for name, prompt in prompts.items():
        loop.submit(request(name, prompt, max_tokens=25))
    outputs = loop.step() + loop.step()
    page = inject_stale_tag(loop, "victim", column)
    forwards = len(runtime.forwards)
    with caplog.at_level(logging.ERROR):
        outputs += drain(loop)
    by_name = {name: [output for output in outputs if output.request_id == name] for name in prompts}
    assert failure(by_name["victim"]).code == "page_tag_mismatch"
    assert tokens(by_name["victim"]) == tokens(expected["victim"])[:2]
    assert all(sequence.request_id != "victim" for batch in runtime.forwards[forwards:] for sequence, _ in batch.runs), (
        "the step ran for the victim"
    )
    for name in ("a", "b"):
        assert by_name[name] == expected[name]
    status = loop.status()
    assert (status.tag_mismatches, status.pages_quarantined, status.pages_used) == (1, 3, 0)
    (event,) = caplog.messages
    assert f"request victim, step 28: page tag mismatch, column {column}, page {page}, expected tag " in event


def test_quarantined_pages_are_not_granted_again(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer, pages=8)
    loop.submit(request("victim", [7] * 20, max_tokens=5))
    loop.step()
    bad = {grant.page for grant in loop._live["victim"].answers[0].grants}
    inject_stale_tag(loop, "victim")
    loop.submit(request("waits", [7] * 50, max_tokens=10))
    outputs = drain(loop)
    assert failure([output for output in outputs if output.request_id == "waits"]).code == "unavailable"
    loop.submit(request("next", [7] * 20, max_tokens=20))
    loop.step()
    assert not bad & {grant.page for grant in loop._live["next"].answers[0].grants}
    drain(loop)


def test_a_damaged_device_table_is_found_too(tokenizer: EngineTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, runtime = scripted_loop(tokenizer)
    prepare = runtime.prepare

    def damaged(batch: object) -> object:
        prepared = prepare(batch)  # type: ignore[arg-type]
        table = prepared.page_table.clone()
        rows = [row for row, (sequence, _) in enumerate(batch.runs) if sequence.request_id == "victim"]  # type: ignore[attr-defined]
        table[rows, 1] = 999
        return dataclasses.replace(prepared, page_table=table)

    monkeypatch.setattr(runtime, "prepare", damaged)
    outputs = serve(loop, request("a", [7] * 20, max_tokens=3), request("victim", [8] * 20, max_tokens=3))
    assert failure(outputs["victim"]).code == "page_tag_mismatch"
    assert tokens(outputs["a"]) == [8, 9, 10]


@pytest.mark.parametrize(("guard", "content_checks"), [("tags", 0), ("tags+content", 23)])
def test_with_the_guard_off_nothing_is_issued_or_compared(tokenizer: EngineTokenizer, guard: str, content_checks: int) -> None:
    loop, _ = scripted_loop(tokenizer, guard="off")
    on, _ = scripted_loop(tokenizer, guard=guard)
    asked = request("r", [7] * 20, max_tokens=8)
    assert serve(loop, asked) == serve(on, asked)
    assert isinstance(loop.pool.tracker, NullTracker)
    assert not isinstance(on.pool.tracker, NullTracker)
    assert (loop.status().guard, on.status().guard) == ("off", guard)
    assert (loop.status().tag_checks, on.status().tag_checks) == (0, 8)
    # Three written pages before every step but the first, four before the last two.
    assert (loop.status().content_checks, on.status().content_checks) == (0, content_checks)


def test_logits_that_are_not_finite_end_that_request_only(tokenizer: EngineTokenizer) -> None:
    loop, runtime = scripted_loop(tokenizer)
    forward = runtime.forward

    def poisoned(prepared: object) -> np.ndarray:
        logits = forward(prepared)  # type: ignore[arg-type]
        for row, sequence in enumerate(prepared.batch.sampled):  # type: ignore[attr-defined]
            if sequence.request_id == "nan":
                logits[row] = np.nan
        return logits

    runtime.forward = poisoned  # type: ignore[method-assign]
    outputs = serve(loop, request("nan", [7]), request("good", [7]))
    assert failure(outputs["nan"]).code == "internal"
    assert len(tokens(outputs["good"])) == 16


def test_counters(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer, max_num_tokens=16)
    serve(loop, request("a", [7] * 20, max_tokens=4), request("b", [7] * 4, max_tokens=2), request("c", []))
    status = loop.status()
    assert (status.tokens_in, status.tokens_out, status.running, status.waiting) == (24, 6, 0, 0)
    assert status.pages_free == 64


def test_damage_to_the_books_is_reported(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer)
    loop.check_integrity()
    loop.pool._free.pop()
    with pytest.raises(ServeError, match="page 63 is lost"):
        loop.check_integrity()


@hypothesis_settings(max_examples=30)
@given(
    arrivals=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 40), st.integers(0, 6)), min_size=1, max_size=12),
    pages=st.integers(8, 20),
    batch=st.integers(1, 4),
    budget=st.integers(1, 40),
)
def test_neither_batch_nor_budget_nor_pages_change_a_request_s_output(
    tokenizer: EngineTokenizer, arrivals: list[tuple[int, int, int]], pages: int, batch: int, budget: int
) -> None:
    loop, _ = scripted_loop(tokenizer, pages=pages, max_batch_size=batch, max_num_tokens=budget)
    outputs = []
    requests = {str(n): request(str(n), [7 + n] * prompt, max_tokens=new) for n, (prompt, new, _) in enumerate(arrivals)}
    for each, (_, _, steps) in zip(requests.values(), arrivals, strict=True):
        loop.submit(each)
        for _ in range(steps):
            outputs += loop.step()
            loop.check_integrity()
    outputs += drain(loop, most=5000)
    alone, _ = scripted_loop(tokenizer, pages=pages)
    for name, each in requests.items():
        assert [output for output in outputs if output.request_id == name] == serve(alone, each)[name]
    assert loop.status().pages_free == pages


def test_seeded_sampling_does_not_depend_on_the_batch(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer)
    seeded = Request(request_id="s", prompt_ids=[7], sampling=SamplingParams(temperature=1.5, seed=3, ignore_eos=True))
    alone = serve(loop, seeded)["s"]
    assert len(set(tokens(alone))) > 5
    crowd = [request(str(n), [n + 3] * n, temperature=1.5, seed=n) for n in range(1, 7)]
    assert serve(loop, *crowd[:3], seeded, *crowd[3:])["s"] == alone
