"""Whether answers are valid tool calls: the right function, with arguments that fit its JSON schema. Nothing forces them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..records import Suite
from ..scorer import CallAnswer, CallQuestion, Need, Prompt, Scorer
from .call_cases import TOOLS, CallCase, call_case
from .contract import Answered, Ground, shortened
from .schema_check import misfit

__all__ = ["Calls", "written_call"]

_ITEMS = 30
_MOST_TOKENS = 128
_MARK = "\nRequest:"
_EXAMPLE_FUNCTIONS = (
    '{"name": "play_music", "description": "Play music.", "parameters": {"type": "object", "properties": '
    '{"artist": {"type": "string"}, "volume": {"type": "integer"}}, "required": ["artist"]}}\n'
    '{"name": "translate", "description": "Translate a text.", "parameters": {"type": "object", "properties": '
    '{"text": {"type": "string"}, "language": {"type": "string"}}, "required": ["text", "language"]}}'
)
_EXAMPLES = (
    (
        "Play something by Nina Simone, not too loud.",
        '{"name": "play_music", "arguments": {"artist": "Nina Simone", "volume": 40}}',
    ),
    (
        "How do you say good morning in French?",
        '{"name": "translate", "arguments": {"text": "good morning", "language": "French"}}',
    ),
)


class Calls:
    """Through the chat template with its own form of tools; where a model has none, in a form that the prompt shows."""

    suite: Suite = "roundhouse"
    name, metric = "rh-tools", "valid calls"
    higher_is_better = is_share = True
    compares = False

    def needs(self, scorer: Scorer) -> Need:
        return "completions" if scorer.lacks("calls") else "calls"

    def size(self, ground: Ground) -> int:
        return ground.cut(_ITEMS)

    def note(self, ground: Ground) -> str:
        if reason := ground.scorer.lacks("calls"):
            return f"in a form that the prompt shows, as {reason}; greedy"
        return "through the chat template with tools; greedy"

    def answer(self, ground: Ground, base: Mapping[str, Any] | None) -> Iterator[Answered]:
        cases = [call_case(ground.seed, number) for number in range(self.size(ground))]
        for number, answer in self._ask(ground.scorer, cases):
            wanted, request, _ = cases[number]
            problem = _problem(answer, wanted)
            told = answer.text or json.dumps(answer.calls)
            said = shortened(told.strip()) + (f" [{problem}]" if problem else "")
            yield Answered(number, float(problem is None), request, said, f"a call of {wanted}", part=wanted)

    def _ask(self, scorer: Scorer, cases: Sequence[CallCase]) -> Iterator[tuple[int, CallAnswer]]:
        if scorer.lacks("calls") is None:
            questions = [
                CallQuestion(request, tuple(TOOLS[name] for name in tools), _MOST_TOKENS) for _, request, tools in cases
            ]
            yield from scorer.call(questions)
            return
        prompts = [Prompt(_shown(case), _MOST_TOKENS, stop=("\n",)) for case in cases]
        for number, text in scorer.generate(prompts):
            yield number, written_call(text)


def written_call(text: str) -> CallAnswer:
    """The call in the first line of an answer in the shown form; no call when it is not such an object."""
    line = text.strip().split("\n", 1)[0]
    try:
        call = json.loads(line)
        name, arguments = str(call["name"]), json.dumps(call["arguments"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return CallAnswer(text, ())
    return CallAnswer(text, ((name, arguments),))


def _shown(case: CallCase) -> str:
    """A prompt that explains the form with examples of functions that are never asked for."""
    _, request, tools = case
    functions = "\n".join(json.dumps(TOOLS[name]["function"]) for name in tools)
    examples = "\n".join(f"{_MARK} {asked}\nCall: {call}" for asked, call in _EXAMPLES)
    return (
        "Each request is answered with a call of the one function that fits it, as JSON in one line.\n\n"
        f"Functions:\n{_EXAMPLE_FUNCTIONS}\n{functions}\n{examples}\n{_MARK} {request}\nCall:"
    )


def _problem(answer: CallAnswer, wanted: str) -> str | None:
    """Why an answer is not one valid call of the function, in a few words; None when it is."""
    if len(answer.calls) != 1:
        return f"{len(answer.calls) or 'no'} calls"
    name, text = answer.calls[0]
    if name != wanted:
        return f"calls {name}"
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return "arguments are not JSON"
    return misfit(arguments, TOOLS[wanted]["function"]["parameters"])
