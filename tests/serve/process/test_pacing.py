from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roundhouse.serve.engine.request import Chunk, Failure, Output, TokenLogprob
from roundhouse.serve.process.pacing import Pacer, merge_chunks

RATE = 100.0
"""Responses a second: ten live requests have a pause of 0.1 s each."""


def chunk(text: str, name: str = "a", *, index: int = 0, last: bool = False, token: int = 1) -> Chunk:
    return Chunk(
        request_id=name,
        index=index,
        text=text,
        token_ids=[token],
        prompt_tokens=3,
        completion_tokens=token,
        finish_reason="length" if last else None,
    )


def failure(name: str = "a") -> Failure:
    return Failure(request_id=name, code="internal", message="no")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def texts(outputs: list[Output]) -> list[str]:
    return [output.text if isinstance(output, Chunk) else "!" for output in outputs]


def test_the_first_text_goes_at_once_and_the_next_waits_for_its_time() -> None:
    clock = Clock()
    pacer = Pacer(RATE, clock)
    pacer.add([chunk("a")])
    assert texts(pacer.take(10)) == ["a"]
    pacer.add([chunk("b")])
    pacer.add([chunk("c")])
    assert pacer.take(10) == []
    assert abs(pacer.wait_s(60.0) - 0.1) < 1e-9
    clock.now += 0.11
    assert pacer.wait_s(60.0) == 0
    assert texts(pacer.take(10)) == ["bc"]
    assert pacer.wait_s(60.0) == 60.0


def test_a_chunk_without_text_does_not_make_the_first_text_wait() -> None:
    pacer = Pacer(RATE, Clock())
    pacer.add([chunk("")])
    assert texts(pacer.take(10)) == [""]
    pacer.add([chunk("x")])
    assert texts(pacer.take(10)) == ["x"]


def test_a_lonely_request_hardly_waits_and_no_pause_grows_without_end() -> None:
    clock = Clock()
    pacer = Pacer(RATE, clock)
    for live, pause in ((1, 0.01), (1000, 0.1)):
        pacer.add([chunk("a")])
        clock.now += 1
        pacer.take(live)
        pacer.add([chunk("b")])
        assert abs(pacer.wait_s(60.0) - pause) < 1e-9
        clock.now += pause + 0.001
        assert texts(pacer.take(live)) == ["b"]


def test_the_end_of_an_answer_never_waits() -> None:
    pacer = Pacer(RATE, Clock())
    pacer.add([chunk("a"), chunk("x", "b")])
    pacer.take(10)
    pacer.add([chunk("b"), chunk("y", "b"), chunk("c", last=True)])
    assert texts(pacer.take(10)) == ["bc"]
    assert texts(pacer.take_all()) == ["y"]


def test_a_failure_comes_after_what_its_request_had_said() -> None:
    pacer = Pacer(RATE, Clock())
    pacer.add([chunk("a"), chunk("p", index=1)])
    pacer.take(10)
    pacer.add([chunk("b"), chunk("q", index=1), failure()])
    assert texts(pacer.take(10)) == ["b", "q", "!"]


def test_merged_chunks_say_what_both_said() -> None:
    first = Chunk(
        request_id="a",
        text="x",
        token_ids=[1],
        prompt_tokens=3,
        completion_tokens=1,
        logprobs=[TokenLogprob(1, -1.0, [(1, -1.0)])],
    )
    then = Chunk(
        request_id="a",
        text="y",
        token_ids=[2, 3],
        prompt_tokens=3,
        cached_tokens=2,
        completion_tokens=3,
        logprobs=[TokenLogprob(2, -2.0, []), TokenLogprob(3, -3.0, [])],
        finish_reason="stop",
        stop_reason="2",
    )
    both = merge_chunks(first, then)
    assert (both.text, both.token_ids, both.completion_tokens, both.cached_tokens) == ("xy", [1, 2, 3], 3, 2)
    assert [each.token_id for each in both.logprobs or ()] == [1, 2, 3]
    assert (both.finish_reason, both.stop_reason) == ("stop", "2")
    assert merge_chunks(chunk("a"), chunk("b")).logprobs is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1), st.booleans(), st.floats(0, 0.2)), max_size=60))
def test_whatever_the_pace_every_answer_is_whole_in_order_and_ends_once(steps: list[tuple[str, int, bool, float]]) -> None:
    clock = Clock()
    pacer = Pacer(RATE, clock)
    said: dict[tuple[str, int], str] = {}
    heard: dict[tuple[str, int], str] = {}
    ended: list[tuple[str, int]] = []
    seen_end: list[tuple[str, int]] = []

    def hear(outputs: list[Output]) -> None:
        for output in outputs:
            assert isinstance(output, Chunk)
            answer = (output.request_id, output.index)
            heard[answer] = heard.get(answer, "") + output.text
            seen_end.extend([answer] if output.finish_reason else [])

    for number, (name, index, last, pause) in enumerate(steps):
        if (name, index) in ended:
            continue
        text = f"{number}," if number % 5 else ""
        said[name, index] = said.get((name, index), "") + text
        pacer.add([chunk(text, name, index=index, last=last)])
        ended.extend([(name, index)] if last else [])
        clock.now += pause
        hear(pacer.take(3))
    hear(pacer.take_all())
    assert heard == said
    assert sorted(seen_end) == sorted(ended)
