"""A scorer as lm-evaluation-harness wants a model to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from roundhouse.errors import ServeError

from ..scorer import Continuation, Likelihood, Prompt, Scorer

if TYPE_CHECKING:
    from lm_eval.api.model import LM

__all__ = ["harness_model"]

_DEFAULT_TOKENS = 256
"""What the harness takes where a task does not say how long an answer may be."""

Answer = TypeVar("Answer")


def harness_model(scorer: Scorer, progress: Callable[[float], None]) -> LM:
    """A model for ``lm_eval.simple_evaluate``.

    Args:
        scorer: who answers.
        progress: hears how many of the questions that were asked together are answered, from 0 to 1.
    """
    from lm_eval.api.model import LM

    class Model(LM):  # type: ignore[misc]  # lm_eval has no type information
        def loglikelihood(self, requests: Sequence[Any]) -> list[tuple[float, bool]]:
            found = self._all(scorer.likelihoods([Continuation(*request.args) for request in requests]), len(requests))
            return [(each.logprob, each.is_greedy) for each in found]

        def loglikelihood_rolling(self, requests: Sequence[Any]) -> list[float]:
            texts = [Continuation("", request.args[0]) for request in requests]
            found: list[Likelihood] = self._all(scorer.likelihoods(texts), len(texts))
            return [each.logprob for each in found]

        def generate_until(self, requests: Sequence[Any]) -> list[str]:
            return self._all(scorer.generate([_prompt(*request.args) for request in requests]), len(requests))

        def _all(self, answers: Iterable[tuple[int, Answer]], count: int) -> list[Answer]:
            found: dict[int, Answer] = {}
            for number, answer in answers:
                found[number] = answer
                progress(len(found) / count)
            if len(found) != count:
                raise ServeError(f"{count - len(found)} of {count} questions were not answered")
            return [found[number] for number in range(count)]

    return Model()


def _prompt(text: str, options: dict[str, Any]) -> Prompt:
    until = options.get("until") or ()
    stop = (until,) if isinstance(until, str) else tuple(until)
    most = int(options.get("max_gen_toks") or options.get("max_tokens") or _DEFAULT_TOKENS)
    temperature = float(options.get("temperature") or 0.0) if options.get("do_sample") else 0.0
    return Prompt(text, most, stop=stop, temperature=temperature, top_p=float(options.get("top_p") or 1.0), cut=True)
