"""Templated arithmetic with exact answers, at growing difficulty, asked so that a base model can answer, too."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...measurement.draws import draw
from ..records import Suite
from ..scorer import Need, Prompt, Scorer
from .contract import Answered, Ground, shortened

__all__ = ["LEVELS", "Arithmetic", "problem"]

_EACH = 16
_SHOTS = 5
_MOST_TOKENS = 16
_NUMBER = re.compile(r"-?\d[\d,]*")

Problem = tuple[str, int]
"""A question and its answer."""


def _sum(digits: int) -> Callable[[random.Random], Problem]:
    def make(chance: random.Random) -> Problem:
        a, b = (chance.randrange(10 ** (digits - 1), 10**digits) for _ in range(2))
        if chance.random() < 0.5:
            return f"What is {a} plus {b}?", a + b
        a, b = max(a, b), min(a, b)
        return f"What is {a} minus {b}?", a - b

    return make


def _product(chance: random.Random) -> Problem:
    a, b = chance.randrange(12, 100), chance.randrange(3, 10)
    return f"What is {a} times {b}?", a * b


def _story(chance: random.Random) -> Problem:
    boxes, each, gone = chance.randrange(3, 10), chance.randrange(4, 13), chance.randrange(2, 11)
    name, thing = chance.choice(("Ada", "Ben", "Cleo", "Dan")), chance.choice(("pencils", "apples", "stamps", "marbles"))
    question = f"{name} has {boxes} boxes with {each} {thing} in each and gives {gone} {thing} away. How many are left?"
    return question, boxes * each - gone


LEVELS: dict[str, Callable[[random.Random], Problem]] = {
    "one digit": _sum(1),
    "two digits": _sum(2),
    "three digits": _sum(3),
    "product": _product,
    "story": _story,
}
"""How problems of each difficulty are made, the easiest first."""


def problem(seed: int, number: int) -> tuple[str, Problem]:
    """An item's difficulty, question and answer. Difficulties take turns, so that the first items have some of each."""
    level = list(LEVELS)[number % len(LEVELS)]
    return level, LEVELS[level](draw(seed, "arithmetic", number))


class Arithmetic:
    """The first number of the answer is right or wrong."""

    suite: Suite = "roundhouse"
    name, metric = "rh-arithmetic", "accuracy"
    higher_is_better = is_share = True
    compares = False

    def needs(self, scorer: Scorer) -> Need:
        return "completions"

    def size(self, ground: Ground) -> int:
        return ground.cut(_EACH * len(LEVELS))

    def note(self, ground: Ground) -> str:
        return f"{_SHOTS} shots of the same difficulty, greedy"

    def answer(self, ground: Ground, base: Mapping[str, Any] | None) -> Iterator[Answered]:
        asked = [problem(ground.seed, number) for number in range(self.size(ground))]
        prompts = [
            Prompt(_shots(ground.seed, level) + _question(question), _MOST_TOKENS, stop=("\n",))
            for level, (question, _) in asked
        ]
        for number, text in ground.scorer.generate(prompts):
            level, (question, answer) = asked[number]
            found = _NUMBER.search(text)
            right = found is not None and int(found[0].replace(",", "")) == answer
            yield Answered(number, float(right), question, shortened(text.strip()), str(answer), part=level)


def _shots(seed: int, level: str) -> str:
    """Examples of a difficulty, which no item is likely to be."""
    made = (LEVELS[level](draw(seed, "arithmetic", level, "shot", number)) for number in range(_SHOTS))
    return "".join(f"{_question(question)} {answer}\n\n" for question, answer in made)


def _question(question: str) -> str:
    return f"Question: {question}\nAnswer:"
