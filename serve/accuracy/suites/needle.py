"""A fact hidden in a long text, at growing lengths and several depths: where a KV cache in FP8 is known to fail first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from roundhouse.build.texts import held_out_text

from ...measurement.draws import draw
from ..records import Suite
from ..scorer import Need, Prompt, Scorer
from .contract import Answered, Ground, shortened

__all__ = ["LENGTHS", "Needle", "haystack"]

LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144)
"""Steps of context, in tokens of about four characters. A suite goes as far as subject and base have room."""
_DEPTHS = (0.1, 0.5, 0.9)
_ROUNDS = 2
_UNKNOWN_ROOM = 2048
"""How far to go where nobody says how much there is."""
_CHARACTERS = 3.6
"""Of a token: a little under what English has, so that a step fits into its number of tokens."""
_ANSWER_TOKENS = 12
_ASIDE = 80
"""Tokens of a step that are left for the question, the answer and the fact."""
_CITIES = ("Lisbon", "Oslo", "Vienna", "Dublin", "Athens", "Warsaw", "Cairo", "Lima", "Quito", "Seoul", "Tunis", "Riga")
_NUMBER = re.compile(r"\d+")


def haystack(seed: int, number: int) -> tuple[int, float, str, str]:
    """An item's step, depth, prompt and answer; it depends on nothing else, so that everybody is asked the same."""
    step = LENGTHS[number % len(LENGTHS)]
    depth = _DEPTHS[number // len(LENGTHS) % len(_DEPTHS)]
    chance = draw(seed, "needle", number)
    city, secret = chance.choice(_CITIES), str(chance.randrange(10_000, 100_000))
    # Shuffled sentences: nothing but the fact can help. The same for all depths of a step, so that beginnings are shared.
    sentences = list(_sentences())
    order = draw(seed, "needle filler", step, number // (len(LENGTHS) * len(_DEPTHS)))
    characters, length, filler = int((step - _ASIDE) * _CHARACTERS), 0, []
    while length < characters:
        order.shuffle(sentences)
        for sentence in sentences:
            if length + len(sentence) + 1 > characters:
                length = characters
                break
            filler.append(sentence)
            length += len(sentence) + 1
    filler.insert(round(depth * len(filler)), f"The secret number of {city} is {secret}.")
    question = f"Question: What is the secret number of {city}?\nAnswer: The secret number of {city} is"
    return step, depth, f"{' '.join(filler)}\n\n{question}", secret


@cache
def _sentences() -> tuple[str, ...]:
    """Of the shipped public-domain text, each one alone."""
    parts = re.split(r"(?<=[.!?])\s+", held_out_text())
    return tuple(part.strip() for part in parts if 30 <= len(part) <= 300)


class Needle:
    """The first number of the answer is the hidden one, or it is not."""

    suite: Suite = "roundhouse"
    name, metric = "rh-needle", "accuracy"
    higher_is_better = is_share = True
    compares = False

    def needs(self, scorer: Scorer) -> Need:
        return "completions"

    def size(self, ground: Ground) -> int:
        return len(self._numbers(ground))

    def note(self, ground: Ground) -> str:
        return f"the fact at {', '.join(f'{depth:.0%}' for depth in _DEPTHS)} of the context, greedy"

    def answer(self, ground: Ground, base: Mapping[str, Any] | None) -> Iterator[Answered]:
        numbers = self._numbers(ground)
        asked = [haystack(ground.seed, number) for number in numbers]
        # Of a step all depths one after another: their beginnings lie in the prefix cache.
        order = sorted(range(len(asked)), key=lambda place: asked[place][:2])
        prompts = [Prompt(asked[place][2], _ANSWER_TOKENS, stop=("\n",)) for place in order]
        for place, text in ground.scorer.generate(prompts):
            step, depth, prompt, secret = asked[order[place]]
            found = _NUMBER.search(text)
            right = found is not None and found[0] == secret
            told = f"{step:,} tokens, the fact at {depth:.0%}: {prompt}"
            number = numbers[order[place]]
            yield Answered(number, float(right), shortened(told), shortened(text.strip()), secret, part=f"{step:,} tokens")

    def _numbers(self, ground: Ground) -> list[int]:
        """Items that fit into the room, as many as are wanted."""
        known = ground.memory.get("needle")
        if known is None:
            everything = range(_ROUNDS * len(_DEPTHS) * len(LENGTHS))
            fitting = [number for number in everything if self._fits(ground, number)]
            known = ground.memory["needle"] = fitting[: ground.cut(len(fitting))]
        return list(known)

    def _fits(self, ground: Ground, number: int) -> bool:
        room = ground.room or _UNKNOWN_ROOM
        if LENGTHS[number % len(LENGTHS)] > room:
            return False
        tokens = ground.scorer.count_tokens(haystack(ground.seed, number)[2])
        return tokens is None or tokens + _ANSWER_TOKENS <= room
