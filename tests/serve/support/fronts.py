"""The real front, served on a free port, before a generator that answers what a script says."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from roundhouse.serve.engine.request import TokenLogprob
from roundhouse.serve.openai.api_keys import ApiKeys
from roundhouse.serve.openai.app import create_app
from roundhouse.serve.openai.chat import ChatTemplate
from roundhouse.serve.openai.errors import api_error_from_triton
from roundhouse.serve.openai.served import ServedModel
from roundhouse.serve.openai.server import FrontServer
from roundhouse.serve.openai.tools import ToolForm
from roundhouse.serve.openai.triton_client import GenerationOptions, Piece

HERMES_TEMPLATE = r"""
{%- if tools %}{{ '<|tools|>' }}{% for tool in tools %}{{ tool | tojson ~ '\n' }}{% endfor %}{% endif %}
{%- for message in messages %}{{ '<|' ~ message.role ~ '|>' ~ message.content }}
{%- for call in message.tool_calls or [] %}
{{- '\n<tool_call>\n{"name": "' ~ call.function.name ~ '", "arguments": ' ~ (call.function.arguments | tojson) ~ '}' }}
{{- '\n</tool_call>' }}
{%- endfor %}{{ '\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"""
"""Writes calls as Hermes and Qwen do."""


@dataclass
class Asked:
    """What the front asked for."""

    prompt: str | list[int]
    options: GenerationOptions
    streaming: bool


@dataclass
class Script:
    """Answers the first request with the first text, and so on; a text ``[code] message`` is an error of the engine.

    A text is streamed in pieces of ``cut`` characters; with a tokenizer, token by token.
    """

    answers: list[str] = field(default_factory=list)
    tokenizer: Any = None
    cut: int = 3
    hides_special: bool = False
    """Whether texts come without special tokens, as the engine sends them."""
    trouble: str | None = None
    finish_reason: str = "stop"
    stop_reason: str | None = None
    cached_tokens: int = 0
    asked: list[Asked] = field(default_factory=list)
    closed: int = 0
    page_map: bytes = b"{}"

    def reset(self) -> None:
        """As new."""
        self.__dict__.update(Script().__dict__)

    async def problem(self) -> str | None:
        return self.trouble

    async def close(self) -> None:
        pass

    async def pages(self) -> bytes:
        if self.trouble is not None:
            raise api_error_from_triton(self.trouble)
        return self.page_map

    async def generate(
        self, prompt: str | list[int], options: GenerationOptions, *, streaming: bool
    ) -> AsyncGenerator[Piece, None]:
        self.asked.append(Asked(prompt, options, streaming))
        text = self.answers.pop(0)
        try:
            for index in range(options.sampling.n):
                for piece in self._pieces(text, prompt, options, index, streaming):
                    yield piece
        finally:
            self.closed += 1

    def _pieces(
        self, text: str, prompt: str | list[int], options: GenerationOptions, index: int, streaming: bool
    ) -> Iterator[Piece]:
        """Raises when the text is an error, or has one in it, after what comes before."""
        if text.startswith("["):
            raise api_error_from_triton(text)
        text, error, problem = text.partition("[unavailable]")
        parts = self._parts(text)
        if not streaming:
            parts = [("".join(part for part, _ in parts), [token for _, tokens in parts for token in tokens])]
        count = 0
        for number, (part, tokens) in enumerate(parts):
            count += len(tokens)
            last = number == len(parts) - 1 and not error
            yield Piece(
                index=index,
                text=part,
                finish_reason=self.finish_reason if last else None,
                stop_reason=self.stop_reason if last else None,
                prompt_tokens=len(prompt),
                cached_tokens=self.cached_tokens,
                completion_tokens=count,
                token_ids=tuple(tokens),
                logprobs=self._logprobs(tokens, options),
            )
        if error:
            raise api_error_from_triton(error + problem)

    def _parts(self, text: str) -> list[tuple[str, list[int]]]:
        if self.tokenizer is None:
            return [(text[at : at + self.cut], [at]) for at in range(0, max(len(text), 1), self.cut)]
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        return [(self.tokenizer.decode([token], skip_special_tokens=self.hides_special), [token]) for token in ids]

    def _logprobs(self, tokens: list[int], options: GenerationOptions) -> tuple[TokenLogprob, ...] | None:
        most = options.sampling.logprobs
        if most is None:
            return None
        return tuple(TokenLogprob(token, -0.5, [(token + number, -0.5 - number) for number in range(most)]) for token in tokens)


@contextmanager
def serving(models: Mapping[str, tuple[ChatTemplate, Script]], *, api_keys: ApiKeys | None = None) -> Iterator[str]:
    """The front's address, with ``/v1``."""
    served = {name: ServedModel(template, lambda script=script: script) for name, (template, script) in models.items()}
    server = FrontServer(create_app(served, api_keys=api_keys), host="127.0.0.1", port=0)
    server.start()
    try:
        yield f"http://127.0.0.1:{server.port}/v1"
    finally:
        server.stop()


def events(response: httpx.Response) -> list[Any]:
    """The data of a response's server-sent events."""
    data = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return [text if text == "[DONE]" else json.loads(text) for text in data]


def template_of(folder: Path, text: str | None = None, *, form: ToolForm | None = None, **tokens: Any) -> ChatTemplate:
    """A tiny model's tokenizer with another chat template, ``tokens`` being what is added to it."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    if tokens:
        tokenizer.add_tokens(tokens.get("words", []))
        tokenizer.add_tokens(tokens.get("special", []), special_tokens=True)
    if text is not None:
        tokenizer.chat_template = text
    return ChatTemplate(tokenizer, form=form)
