"""The playground: ask one deployment, or two side by side, and see what they say and how fast."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from ...playground.answering import answer
from ...playground.form import PlaygroundForm
from ...playground.question import Question
from ...playground.turns import Turn, ask_all, conversation_json, conversation_of
from ...playground.upstream import Upstream, choice_of, choices, find_upstream
from ..events import Event, EventStream
from ..page import Page
from ..state import state_of
from ..who import Deployer, Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/playground")
_TEMPLATE = "playground/playground.html"
Chosen = Annotated[str, Query(alias="with", max_length=64)]
Beside = Annotated[str, Query(max_length=64)]


@router.get("", dependencies=[needs("read")])
def playground(page: Page, session: Reading, chosen: Chosen = "", beside: Beside = "") -> Response:
    """The page, with nothing said yet."""
    return page(_TEMPLATE, **_scene(session, chosen, beside), form=PlaygroundForm(), turns=(), conversation="", errors={})


@router.post("/{deployment_id}/chat")
async def chat(request: Request, deployment_id: str, question: Question, _: Deployer) -> Response:
    """Ask one deployment; its answer comes as events. When whoever asks goes away, so does the request behind it."""
    upstream = await run_in_threadpool(_find, request, deployment_id)
    return EventStream(_events(upstream, question))


@router.post("")
def ask(request: Request, page: Page, session: Reading, _: Deployer, form: Annotated[PlaygroundForm, Form()]) -> Response:
    """The same without scripts: the page comes back with the whole answers on it."""
    scene = _scene(session, form.chosen, form.beside)
    session.close()  # no connection is held while the models write
    turns = conversation_of(form.conversation)
    parameters, errors = form.parameters()
    if not form.prompt.strip():
        errors = {"prompt": "write something first", **errors}
    if errors:
        return page(_TEMPLATE, 422, **scene, form=form, turns=turns, conversation=conversation_json(turns), errors=errors)
    answers = ask_all([each.id for each in scene["asked"]], partial(_find, request), turns, form.prompt, parameters)
    turns = (*turns, Turn(prompt=form.prompt, answers=answers))
    form = form.model_copy(update={"prompt": ""})
    return page(_TEMPLATE, **scene, form=form, turns=turns, conversation=conversation_json(turns), errors={})


def _scene(session: Session, chosen: str, beside: str) -> dict[str, Any]:
    """Who can be asked, who is, and who was named and is not there."""
    there = choices(session)
    if not chosen and there:
        chosen = there[0].id
    named = list(dict.fromkeys(each for each in (chosen, beside) if each))
    asked = [found for each in named if (found := choice_of(session, each)) is not None]
    missing = [each for each in named if each not in {found.id for found in asked}]
    return {"choices": there, "asked": asked, "missing": missing}


def _find(request: Request, deployment_id: str) -> Upstream:
    state = state_of(request)
    with state.database.reading() as session:
        return find_upstream(session, deployment_id, state.settings.home)


async def _events(upstream: Upstream, question: Question) -> AsyncIterator[str]:
    async with aclosing(answer(upstream, question)) as parts:
        async for part in parts:
            yield Event(part.model_dump()).encoded
