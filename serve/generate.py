"""`roundhouse generate`: one prompt through the engine loop, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from roundhouse.errors import RequestError, RoundhouseError, UsageError

from .engine.admission import check_sampling
from .engine.request import Failure, Request, SamplingParams
from .free_memory import free_memory_for
from .openai.chat import load_chat_template
from .openai.schemas import ChatMessage
from .runtimes import require_runnable
from .settings import EngineSettings, Overrides
from .threads import prepare_threads

if TYPE_CHECKING:
    from roundhouse.build.engine import Engine

    from .engine.loop import EngineLoop

__all__ = ["Answer", "generate"]


@dataclass(frozen=True)
class Answer:
    """What came out, and what it took."""

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    tokens_per_second: float
    """Generated tokens over the time from the first step to the last, prompt included."""
    tag_checks: int
    tag_mismatches: int

    def as_dict(self) -> dict[str, object]:
        """For ``--json``."""
        return asdict(self)


def generate(
    engine: Engine,
    prompt: str,
    sampling: SamplingParams,
    *,
    overrides: Overrides,
    chat: bool,
    reference: bool,
    on_text: Callable[[str], None],
) -> Answer:
    """Load an engine, run one prompt and hand out its text as it comes.

    Args:
        engine: what to run.
        prompt: a user message when ``chat``, else text to continue.
        sampling: how tokens are drawn and when to stop.
        overrides: settings that differ from the recipe's.
        chat: put the prompt through the tokenizer's chat template.
        reference: float32 weights and pages.
        on_text: called with each new piece of text.

    Raises:
        UsageError: the engine's target has a loop of its own, the prompt or a parameter is impossible, or ``chat`` with a
            tokenizer without a template.
        EngineError: as :func:`roundhouse.serve.runtimes.require_runnable`.
        SetupError: as :func:`roundhouse.serve.runtimes.require_runnable`.
        RequestError: the engine could not finish the request.
    """
    prepare_threads()
    require_runnable(engine)
    from .runtimes import create_loop

    if chat and not engine.manifest.chat:
        raise UsageError("this engine's tokenizer has no chat template", hint="Use --raw to continue the prompt as it is.")
    _check(sampling)  # before anything is loaded
    settings = EngineSettings.for_engine(
        engine,
        overrides,
        free_memory=free_memory_for(engine),
        precision="reference" if reference else "engine",
    )
    template = load_chat_template(engine.checkpoint, chat=chat)
    prompt_ids = template.prompt_ids([ChatMessage(role="user", content=prompt)]) if chat else None
    request = Request(request_id="generate", prompt=None if chat else prompt, prompt_ids=prompt_ids, sampling=sampling)
    with engine.held():
        return _run(create_loop(engine, settings), request, on_text)


def _run(loop: EngineLoop, request: Request, on_text: Callable[[str], None]) -> Answer:
    """Step until the request has ended."""
    loop.submit(request)
    pieces: list[str] = []
    last = None
    start = time.monotonic()
    while loop.has_work:
        for output in loop.step():
            if isinstance(output, Failure):
                raise _error(output)
            pieces.append(output.text)
            on_text(output.text)
            last = output
    seconds = time.monotonic() - start
    if last is None or last.finish_reason is None:
        raise RequestError("internal", "the engine ended without an answer")
    status = loop.status()
    return Answer(
        text="".join(pieces),
        finish_reason=last.finish_reason,
        prompt_tokens=last.prompt_tokens,
        completion_tokens=last.completion_tokens,
        tokens_per_second=last.completion_tokens / seconds,
        tag_checks=status.tag_checks,
        tag_mismatches=status.tag_mismatches,
    )


def _check(sampling: SamplingParams) -> None:
    try:
        check_sampling(sampling)
    except RequestError as error:
        raise UsageError(error.message) from None


def _error(failure: Failure) -> RoundhouseError:
    """What the caller got wrong is a usage error; everything else is the engine's."""
    if failure.code == "invalid_request":
        return UsageError(failure.message)
    return RequestError(failure.code, failure.message)
