"""The shipped suites: questions that depend on seed and number alone, and answers judged exactly."""

from __future__ import annotations

import json
import math
import re

import jsonschema_rs
import pytest
from fake_scorer import FakeScorer
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.build.texts import held_out_text
from roundhouse.errors import ServeError
from roundhouse.serve.accuracy.scorer import CallAnswer
from roundhouse.serve.accuracy.suites import SHIPPED
from roundhouse.serve.accuracy.suites.arithmetic import LEVELS, problem
from roundhouse.serve.accuracy.suites.call_cases import TOOLS, call_case
from roundhouse.serve.accuracy.suites.calls import written_call
from roundhouse.serve.accuracy.suites.contract import Ground
from roundhouse.serve.accuracy.suites.needle import LENGTHS, haystack
from roundhouse.serve.accuracy.suites.reading import divergence
from roundhouse.serve.accuracy.suites.schema_check import misfit


def ground(scorer: FakeScorer, *, limit: int | None = None, room: int | None = 1024, seed: int = 0) -> Ground:
    return Ground(scorer, seed, limit, room)


def answers(task: str, here: Ground, base=None):
    return {each.number: each for each in SHIPPED[task].answer(here, base)}


def test_names_cannot_be_mistaken_for_public_ones() -> None:
    assert all(name.startswith("rh-") and task.name == name for name, task in SHIPPED.items())


@pytest.mark.parametrize("task", ["rh-arithmetic", "rh-needle", "rh-tools"])
def test_questions_depend_on_the_seed_and_their_number_alone(task: str) -> None:
    asked = {}
    for name, seed, limit in (("all", 0, None), ("few", 0, 7), ("other", 1, 7)):
        asked[name] = {
            number: each.asked for number, each in answers(task, ground(FakeScorer(), limit=limit, seed=seed)).items()
        }
    assert len(asked["few"]) == 7
    assert asked["few"].items() <= asked["all"].items()
    assert asked["other"] != asked["few"]


def test_whoever_calculates_has_every_sum_right() -> None:
    def calculate(prompt: str) -> str:
        question = re.findall(r"Question: (.*)", prompt)[-1]
        numbers = [int(found) for found in re.findall(r"\d+", question)]
        if "plus" in question:
            return f" {sum(numbers):,}"
        if "minus" in question:
            return f" The answer is {numbers[0] - numbers[1]}."
        return f" {numbers[0] * numbers[1] - (numbers[2] if len(numbers) > 2 else 0)}"

    found = answers("rh-arithmetic", ground(FakeScorer(calculate)))
    assert all(each.score == 1 for each in found.values())
    assert {each.part for each in found.values()} == set(LEVELS)


def test_no_answer_and_a_wrong_one_are_both_wrong() -> None:
    for said in ("", "I do not know", "-1"):
        assert not any(
            each.score for each in answers("rh-arithmetic", ground(FakeScorer(lambda _, said=said: said), limit=10)).values()
        )


@given(st.integers(0, 2**31), st.integers(0, 500))
def test_no_sum_comes_out_negative(seed: int, number: int) -> None:
    _, (question, answer) = problem(seed, number)
    assert answer >= 0
    assert question.endswith("?")


def test_whoever_searches_finds_every_needle() -> None:
    def search(prompt: str) -> str:
        return " " + re.search(r"The secret number of \w+ is (\d+)\.", prompt)[1]

    found = answers("rh-needle", ground(FakeScorer(search), room=2048))
    assert all(each.score == 1 for each in found.values())
    assert {each.part for each in found.values()} == {"256 tokens", "512 tokens", "1,024 tokens", "2,048 tokens"}


def test_no_needle_is_asked_for_beyond_the_room() -> None:
    assert {each.part for each in answers("rh-needle", ground(FakeScorer(), room=600)).values()} == {"256 tokens", "512 tokens"}
    assert answers("rh-needle", ground(FakeScorer(), room=100)) == {}


@pytest.mark.parametrize("number", range(0, 60, 7))
def test_a_needle_lies_where_it_should_in_a_text_that_is_as_long_as_it_should_be(number: int) -> None:
    step, depth, prompt, secret = haystack(0, number)
    assert step in LENGTHS
    text, question = prompt.split("\n\nQuestion:")
    assert text.count(secret) == 1
    assert secret not in question
    assert text.index(secret) / len(text) == pytest.approx(depth, abs=0.25 if step == 256 else 0.12)
    assert 0.5 * step < len(text) / 4 < step


def test_depths_of_one_step_share_their_beginning() -> None:
    first, later = (haystack(0, number)[2] for number in (len(LENGTHS) + 2, 2 * len(LENGTHS) + 2))
    shared = next(place for place, (one, other) in enumerate(zip(first, later, strict=False)) if one != other)
    assert shared > 0.35 * len(first)


def right_call(request: str, wanted: str) -> dict[str, object]:
    """Arguments that fit, of every tool."""
    return {
        "get_weather": {"city": "Oslo", "unit": "celsius"},
        "convert_currency": {"amount": 5, "from": "EUR", "to": "USD"},
        "create_event": {"title": "lesson", "date": "2027-01-02", "minutes": 30},
        "send_message": {"recipients": ["Wei"], "text": "late", "urgent": True},
        "book_table": {"restaurant": "Casa Verde", "guests": 2},
        "set_lights": {"room": "office", "settings": {"on": True, "brightness": 40}},
    }[wanted]


def test_a_valid_call_of_the_right_tool_is_right_through_the_template_and_without() -> None:
    wanted = {call_case(0, number)[1]: call_case(0, number)[0] for number in range(30)}
    through = FakeScorer(
        call=lambda asked: CallAnswer("", ((wanted[asked.request], json.dumps(right_call("", wanted[asked.request]))),))
    )

    def write(prompt: str) -> str:
        request = prompt.rsplit("Request: ", 1)[1].removesuffix("\nCall:")
        return " " + json.dumps({"name": wanted[request], "arguments": right_call("", wanted[request])}) + "\nmore"

    without = FakeScorer(write)
    for scorer in (through, without):
        found = answers("rh-tools", ground(scorer))
        assert [each.answered for each in found.values() if not each.score] == []
    assert SHIPPED["rh-tools"].needs(through) == "calls"
    assert SHIPPED["rh-tools"].needs(without) == "completions"
    assert SHIPPED["rh-tools"].note(ground(through)) != SHIPPED["rh-tools"].note(ground(without))


@pytest.mark.parametrize(
    ("calls", "problem"),
    [
        ((), "no calls"),
        ((("get_weather", '{"city": "Oslo"}'),) * 2, "2 calls"),
        ((("set_lights", "{}"),), "calls set_lights"),
        ((("get_weather", '{"city": '),), "arguments are not JSON"),
        ((("get_weather", "{}"),), "arguments lacks city"),
        ((("get_weather", '{"city": 3}'),), "arguments.city is no string"),
        ((("get_weather", '{"city": "Oslo", "day": 1}'),), "arguments has day, which nothing asks for"),
    ],
)
def test_anything_else_is_wrong_and_says_why(calls, problem: str) -> None:
    assert call_case(0, 0)[0] == "get_weather"
    (found,) = answers("rh-tools", ground(FakeScorer(call=lambda _: CallAnswer("text", calls)), limit=1)).values()
    assert found.score == 0
    assert f"[{problem}]" in found.answered


@pytest.mark.parametrize("text", ["", "Hello", "[1]", '{"name": "x"}', '{"name": "x", "arguments": {', "null"])
def test_a_text_without_such_an_object_has_no_call(text: str) -> None:
    assert written_call(text).calls == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2000) | st.sampled_from(["", "EUR", "2027-01-02", "office", 1.0, 2.5]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["city", "amount", "from", "to", "on", "brightness", "room", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)
SCHEMAS = [tool["function"]["parameters"] for tool in TOOLS.values()]


@given(JSON, st.sampled_from([*SCHEMAS, *(part for schema in SCHEMAS for part in schema["properties"].values())]))
def test_the_check_agrees_with_a_whole_validator(value: object, schema: dict[str, object]) -> None:
    assert (misfit(value, schema) is None) == jsonschema_rs.is_valid(schema, value)


def test_a_keyword_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="oneOf"):
        misfit(1, {"type": "integer", "oneOf": []})


def test_every_word_of_the_text_counts_once_but_the_first() -> None:
    found = answers("rh-perplexity", ground(FakeScorer(chance=lambda word: (-math.log(7), {}))))
    assert sum(each.tokens for each in found.values()) == len(held_out_text().split()) - 1
    assert all(each.score == pytest.approx(-math.log(7) * each.tokens) for each in found.values())


def test_sentences_do_not_depend_on_the_limit() -> None:
    every, few = (answers("rh-perplexity", ground(FakeScorer(), limit=limit)) for limit in (None, 5))
    assert len(few) == 5
    assert {number: each.asked for number, each in few.items()} == {number: every[number].asked for number in few}


def agreement(subject: FakeScorer, base: FakeScorer):
    before, after = ground(base), ground(subject)
    assert answers("rh-agreement", before) == {}
    return answers("rh-agreement", after, before.memory), after.memory


def test_a_model_agrees_with_itself_in_every_place() -> None:
    found, memory = agreement(FakeScorer(), FakeScorer())
    assert all(each.score == each.tokens for each in found.values())
    assert memory["details"] == {"KL": 0.0}
    assert "doubt" not in memory


def test_where_another_token_is_likeliest_it_does_not() -> None:
    def forgets_alice(word: str):
        return (-1.0, {"it": -0.5, word: -1.0}) if "Alice" in word else (-1.0, {word: -1.0})

    found, memory = agreement(FakeScorer(chance=forgets_alice), FakeScorer())
    words = held_out_text().split()[1:]
    assert sum(each.tokens - each.score for each in found.values()) == sum("Alice" in word for word in words)
    assert memory["details"]["KL"] >= 0


def test_places_where_nothing_is_named_by_both_are_told() -> None:
    found, memory = agreement(FakeScorer(chance=lambda word: (-1.0, {"Alice": -1.0})), FakeScorer())
    assert all(each.score <= each.tokens for each in found.values())
    places = sum(each.tokens for each in found.values())
    alike = sum(word == "Alice" for word in held_out_text().split()[1:])
    assert memory["doubt"].startswith(f"in {places - alike} of {places} places the two name no likely token in common")


@pytest.mark.parametrize(
    ("named", "reason"),
    [(lambda word: hash(word), "by number and the other by text"), (lambda word: f"{word}!", "no likely token in common")],
    ids=["by number", "in another way"],
)
def test_tokens_that_are_named_in_two_ways_cannot_be_compared(named, reason: str) -> None:
    other = FakeScorer(chance=lambda word: (-1.0, {named(word): -1.0}))
    for subject, base in ((FakeScorer(), other), (other, FakeScorer())):
        with pytest.raises(ServeError, match=reason):
            agreement(subject, base)


@pytest.mark.parametrize("task", ["rh-perplexity", "rh-agreement"])
def test_sentences_are_answered_as_they_are_read(task: str) -> None:
    class Counting(FakeScorer):
        finished = False

        def read(self, texts, *, top):
            yield from super().read(texts, top=top)
            self.finished = True

    base = ground(FakeScorer())
    answers("rh-agreement", base)
    scorer = Counting()
    next(SHIPPED[task].answer(ground(scorer), base.memory))
    assert not scorer.finished


def test_other_tokens_cannot_be_compared() -> None:
    class Letters(FakeScorer):
        def read(self, texts, *, top):
            for number, tokens in super().read(texts, top=top):
                yield number, tokens[:1] + tokens[2:]

    with pytest.raises(ServeError, match="other tokens"):
        agreement(Letters(), FakeScorer())


CHANCES = st.lists(st.floats(0.01, 1), min_size=2, max_size=6)


@given(CHANCES, CHANCES)
def test_divergence_over_the_named_tokens_is_never_more_than_the_whole_one(one: list[float], other: list[float]) -> None:
    size = min(len(one), len(other))
    p, q = ([math.log(chance / sum(side[:size])) for chance in side[:size]] for side in (one, other))
    whole = sum(math.exp(a) * (a - b) for a, b in zip(p, q, strict=True))
    assert divergence(dict(enumerate(p)), dict(enumerate(q))) == pytest.approx(whole, abs=1e-6)
    assert 0 <= divergence(dict(enumerate(p[:1])), dict(enumerate(q))) <= whole + 1e-6
