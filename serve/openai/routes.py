"""The routes: from a request's body to its answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence

from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

from ..engine.request import SamplingParams
from .answering import respond
from .chat import ChatTemplate
from .choices import ChatChoice, CompletionChoice
from .errors import ApiError
from .fields import GenerationFields
from .responses import Answer, AnswerHead
from .schemas import ChatRequest, CompletionRequest, Prompt
from .served import ServedModel, model_named
from .tools.use import plan_tools
from .triton_client import GenerationOptions, Piece

__all__ = ["add_generation_routes"]


def add_generation_routes(app: FastAPI, models: Mapping[str, ServedModel]) -> None:
    """Add the routes that generate text.

    Args:
        app: its ``state.generators`` are the models' clients to Triton, by name.
        models: what it serves.
    """

    @app.post("/v1/completions")
    async def completions(body: CompletionRequest, request: Request) -> Response:
        template = model_named(body.model, models).template
        echoes = [_echo(prompt, template) if body.echo else "" for prompt in body.prompts]

        def choice(number: int) -> CompletionChoice:
            return CompletionChoice(number, template.tokens, echoes[number // body.answers])

        head = AnswerHead("completion", body.model, request.state.request_id)
        answer = Answer(head, choice, n=body.answers, include_usage=body.include_usage)
        return await _respond(answer, body, request, body.prompts, body.sampling)

    @app.post("/v1/chat/completions")
    async def chat_completions(body: ChatRequest, request: Request) -> Response:
        template = model_named(body.model, models).template
        template.require_chat()
        use = plan_tools(body, template.form, template_takes_tools=template.takes_tools)
        # Takes seconds when the text is long.
        prompt = await run_in_threadpool(template.prompt_ids, body.messages, use.tools, use.opening)
        sampling = body.sampling(use.guide)

        def choice(number: int) -> ChatChoice:
            if use.parser is None:
                return ChatChoice(number, template.tokens)
            marked = None if template.marked is None else template.marked.text(sampling.stop)
            calls = use.parser()
            return ChatChoice(number, template.tokens, calls, opening=use.opening, marked=marked, parallel=use.parallel)

        head = AnswerHead("chat", body.model, request.state.request_id)
        answer = Answer(head, choice, n=body.answers, include_usage=body.include_usage)
        return await _respond(answer, body, request, [prompt], sampling)


async def _respond(
    answer: Answer, body: GenerationFields, request: Request, prompts: Sequence[Prompt], sampling: SamplingParams
) -> Response:
    """Answer, with errors that name the request's own fields."""
    try:
        return await respond(answer, _generate(body, request, prompts, sampling), request, stream=body.streaming)
    except ApiError as error:
        error.param = body.field_behind(error.param)
        raise


def _generate(
    body: GenerationFields, request: Request, prompts: Sequence[Prompt], sampling: SamplingParams
) -> list[AsyncGenerator[Piece, None]]:
    """A stream of pieces for each prompt; none has been asked for yet."""
    options = GenerationOptions(
        sampling=sampling,
        request_id=request.state.request_id,
        cache_salt=body.cache_salt or "",
        priority=body.priority or 0,
        deadline_s=body.deadline_s,
        session_affinity=request.state.session_affinity,
    )
    generator = request.app.state.generators[body.model]
    return [generator.generate(prompt, options, streaming=body.streaming) for prompt in prompts]


def _echo(prompt: Prompt, template: ChatTemplate) -> str:
    return prompt if isinstance(prompt, str) else template.tokens.decode(prompt)
