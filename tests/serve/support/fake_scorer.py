"""A scorer without a model: says what it is told to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from roundhouse.errors import ServeError
from roundhouse.serve.accuracy.scorer import (
    CallAnswer,
    CallQuestion,
    Continuation,
    Likelihood,
    Need,
    Prompt,
    TextToken,
)

Said = Callable[[str], str]


class FakeScorer:
    """Answers prompts by a function, and reads texts word by word.

    Args:
        say: the answer to a prompt.
        call: the answer to a request with tools; None where it cannot have tools.
        chance: log-probability of a word, and the likeliest words in its place.
        room: tokens of a request.
        lacking: reasons by need.
    """

    def __init__(
        self,
        say: Said = lambda prompt: "",
        *,
        call: Callable[[CallQuestion], CallAnswer] | None = None,
        chance: Callable[[str], tuple[float, Mapping[int | str, float]]] = lambda word: (-1.0, {word: -1.0}),
        room: int | None = 512,
        lacking: Mapping[Need, str] | None = None,
    ) -> None:
        self.say = say
        self.reply = call
        self.chance = chance
        self.room = room
        self.lacking = dict(lacking or {})
        if call is None:
            self.lacking.setdefault("calls", "there are no tools here")
        self.closed = False
        self.prompts: list[Prompt] = []

    def lacks(self, need: Need) -> str | None:
        return self.lacking.get(need)

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, str]]:
        self.prompts += prompts
        for number, prompt in enumerate(prompts):
            yield number, self.say(prompt.text)

    def likelihoods(self, continuations: Sequence[Continuation]) -> Iterator[tuple[int, Likelihood]]:
        for number, each in enumerate(continuations):
            words = each.text.split()
            yield number, Likelihood(sum(self.chance(word)[0] for word in words), len(words), False)

    def read(self, texts: Sequence[str], *, top: int) -> Iterator[tuple[int, list[TextToken]]]:
        for number, text in enumerate(texts):
            tokens, end = [], 0
            for word in text.split():
                end = text.index(word, end) + len(word)
                tokens.append(TextToken(end, *self.chance(word)) if tokens else TextToken(end, None, {}))
            yield number, tokens

    def call(self, questions: Sequence[CallQuestion]) -> Iterator[tuple[int, CallAnswer]]:
        if self.reply is None:
            raise ServeError("there are no tools here")
        for number, question in enumerate(questions):
            yield number, self.reply(question)

    def count_tokens(self, text: str) -> int | None:
        return len(text.split())

    def close(self) -> None:
        self.closed = True
