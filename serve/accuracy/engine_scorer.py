"""An engine answers, loaded into this process as its own process would: the same loop, pages, checks and settings."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from roundhouse.build.engine import Engine
from roundhouse.build.home import home_of
from roundhouse.errors import BenchmarkStoppedError, RequestError, ServeError

from ..engine.admission import make_sequence
from ..engine.loop import EngineLoop
from ..engine.pool import PagePool
from ..engine.request import Chunk, Failure, Request, SamplingParams
from ..engine.tokenizer import load_tokenizer
from ..integrity_events import EventsFile
from ..openai.chat import load_chat_template
from ..openai.schemas import ChatMessage
from ..settings import EngineSettings
from ..threads import prepare_threads
from .engine_calls import calls_of, tools_of
from .engine_likelihoods import EngineLikelihoods
from .prompt_pass import PromptPass
from .scorer import CallAnswer, CallQuestion, Continuation, Likelihood, Need, Prompt, TextToken

if TYPE_CHECKING:
    from ..engine.sequence import Sequence as EngineSequence

__all__ = ["EngineScorer"]


class EngineScorer:
    """Loads an engine and asks it. It computes in the calling thread, so that Ctrl-C ends it between two steps.

    Args:
        engine: whom to ask.
        settings: how to run it.
        stopping: set when the evaluation is to end.

    Raises:
        ServeError: as :func:`~roundhouse.serve.runtimes.create_runtime`, like others.
    """

    def __init__(self, engine: Engine, settings: EngineSettings, stopping: threading.Event) -> None:
        prepare_threads()
        from ..runtimes import create_check, create_runtime, fitted_settings

        settings = fitted_settings(engine, settings)
        self._stopping = stopping
        with ExitStack() as stack:  # what cannot be loaded is not held
            stack.enter_context(engine.held())
            runtime = create_runtime(engine, settings)
            self._tokenizer = load_tokenizer(engine.checkpoint)
            self._template = load_chat_template(engine.checkpoint, chat=engine.manifest.chat)
            self._stack = stack.pop_all()
        self._settings = settings
        self._vocab = engine.manifest.plan.shape.vocab
        integrity = create_check(runtime, settings)
        pool = PagePool(settings.kv.pages, integrity.tracker)
        self._loop = EngineLoop(
            runtime,
            settings,
            self._tokenizer,
            vocab=self._vocab,
            integrity=integrity,
            pool=pool,
            on_integrity_event=EventsFile(home_of(engine.folder).integrity_events, engine.manifest.id),
        )
        prompts = PromptPass(
            runtime, pool, integrity, settings, vocab=self._vocab, make_sequence=self._sequence, check=self._check
        )
        self.room: int | None = settings.longest_request
        self._likelihoods = EngineLikelihoods(prompts, self._tokenizer, room=self.room)
        self._ids = itertools.count()

    def lacks(self, need: Need) -> str | None:
        if need != "calls" or (self._template.takes_tools and self._template.form is not None):
            return None
        if not self._template.supported:
            return "the model's tokenizer has no chat template"
        if not self._template.takes_tools:
            return "the model's chat template has no place for tools"
        return "how the model writes tool calls is not known here"

    def generate(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, str]]:
        for number, chunks in self._run([self._request(prompt) for prompt in prompts]):
            yield number, "".join(chunk.text for chunk in chunks)

    def likelihoods(self, continuations: Sequence[Continuation]) -> Iterator[tuple[int, Likelihood]]:
        self._loop.forget_prefixes()
        return self._likelihoods.score(continuations)

    def read(self, texts: Sequence[str], *, top: int) -> Iterator[tuple[int, list[TextToken]]]:
        self._loop.forget_prefixes()
        return self._likelihoods.read(texts, top=top)

    def call(self, questions: Sequence[CallQuestion]) -> Iterator[tuple[int, CallAnswer]]:
        form = self._template.form
        if (reason := self.lacks("calls")) or form is None:
            raise ServeError(f"tools cannot be called: {reason}")
        requests = []
        for question in questions:
            messages = [ChatMessage(role="user", content=question.request)]
            ids = self._template.prompt_ids(messages, tools_of(question))
            sampling = SamplingParams(max_tokens=question.max_tokens)
            requests.append(Request(request_id=self._id(), prompt_ids=ids, sampling=sampling))
        for number, chunks in self._run(requests):
            ids = [token for chunk in chunks for token in chunk.token_ids if token not in self._tokenizer.eos_ids]
            # Markers of calls are special tokens in some vocabularies, which a chunk's text leaves out.
            text = str(self._tokenizer.backend.decode(ids, skip_special_tokens=False))
            yield number, calls_of(text, form, questions[number])

    def count_tokens(self, text: str) -> int | None:
        return len(self._tokenizer.encode(text))

    def close(self) -> None:
        self._stack.close()

    def _check(self) -> None:
        if self._stopping.is_set():
            raise BenchmarkStoppedError("the evaluation was stopped")

    def _id(self) -> str:
        return f"question-{next(self._ids)}"

    def _sequence(self, tokens: list[int]) -> EngineSequence:
        request = Request(request_id=self._id(), prompt_ids=tokens, sampling=SamplingParams(max_tokens=1))
        return make_sequence(
            request,
            self._tokenizer,
            vocab=self._vocab,
            max_seq_len=self._settings.max_seq_len,
            pool_tokens=self._settings.kv.tokens,
        )

    def _request(self, prompt: Prompt) -> Request:
        sampling: dict[str, Any] = {"temperature": prompt.temperature, "top_p": prompt.top_p, "seed": prompt.seed}
        params = SamplingParams(max_tokens=prompt.max_tokens, stop=prompt.stop, **sampling)
        if not prompt.cut:
            return Request(request_id=self._id(), prompt=prompt.text, sampling=params)
        ids = self._tokenizer.encode(prompt.text)
        most = max(1, (self.room or len(ids)) - min(prompt.max_tokens, (self.room or len(ids)) // 2))
        return Request(request_id=self._id(), prompt_ids=ids[-most:], sampling=params)

    def _run(self, requests: Sequence[Request]) -> Iterator[tuple[int, list[Chunk]]]:
        """Run requests, a batch's worth of them waiting at most."""
        numbers = {request.request_id: number for number, request in enumerate(requests)}
        chunks: dict[str, list[Chunk]] = {}
        coming = iter(requests)
        try:
            while True:
                for request in itertools.islice(coming, max(0, 2 * self._settings.max_batch_size - len(chunks))):
                    chunks[request.request_id] = []
                    self._loop.submit(request)
                if not chunks:
                    return
                self._check()
                for output in self._loop.step():
                    if isinstance(output, Failure):
                        chunks.pop(output.request_id, None)
                        raise RequestError(output.code, output.message)
                    if output.request_id in chunks:
                        chunks[output.request_id].append(output)
                        if output.finish_reason is not None:
                            yield numbers[output.request_id], chunks.pop(output.request_id)
        finally:
            for request_id in chunks:
                self._loop.cancel(request_id)
            if chunks:
                self._loop.step()
