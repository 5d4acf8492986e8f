"""How one chat request uses tools: what the template gets, what holds the answer, and what reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...engine.request import Guide
from ..errors import ApiError
from ..response_format import schema_of
from ..schemas import ChatRequest
from .bare_json import BareJsonParser
from .call_schema import call_guide
from .definitions import NamedTool, Tool, schemas_of
from .form import CallParser, ToolForm

__all__ = ["ToolUse", "plan_tools"]


@dataclass(frozen=True)
class ToolUse:
    """What a request's tools come to.

    ``tools`` is for the template; ``opening`` is how the answer begins, before its first token; ``guide`` holds the answer;
    ``parser`` makes what reads one answer, its opening included; it is None when nothing can be called.
    """

    guide: Guide | None
    tools: tuple[Tool, ...] = ()
    opening: str = ""
    parser: Callable[[], CallParser] | None = None
    parallel: bool = True


def plan_tools(request: ChatRequest, form: ToolForm | None, *, template_takes_tools: bool) -> ToolUse:
    """Decide how a request's tools are used.

    A call that must be made (``tool_choice`` required, or a function's name) is one JSON object that the engine holds to
    the tool's schema, after the form's opening where it is such an object there, else a bare one. With a
    ``response_format`` an answer is either such a bare call or follows the format.

    Args:
        request: the request.
        form: how the model writes calls, if that is known.
        template_takes_tools: whether the model gets to see tools at all.

    Raises:
        ApiError: the model cannot be given tools, or its calls could not be read.
    """
    tools = tuple(request.usable_tools)
    if not tools:
        return ToolUse(request.guide)
    if not template_takes_tools:
        way_out = "ask another model, or set tool_choice to none"
        raise _refused("tools", f"this model's chat template has no place for tools; {way_out}")
    parallel = request.parallel_tool_calls is not False
    if request.tool_choice == "required" or isinstance(request.tool_choice, NamedTool):
        return _forced(request, tools, form, parallel)
    if request.guided_regex is not None:
        raise _refused("guided_regex", "a text held to guided_regex cannot call tools; set tool_choice to none")
    schemas = schemas_of(list(tools))
    answer = schema_of(request.response_format)
    if answer is not None:
        key = form.arguments_key if form else "arguments"
        guide = call_guide(schemas, key, or_answer=answer)
        return ToolUse(guide, tools, parser=lambda: BareJsonParser(schemas, (key,)), parallel=parallel)
    if form is None:
        way_out = "set tool_choice to required or to a function's name, or serve it with --tool-form"
        raise _refused("tools", f"how this model writes tool calls is not known here; {way_out}")
    return ToolUse(None, tools, parser=lambda: form.parser(schemas), parallel=parallel)


def _forced(request: ChatRequest, tools: tuple[Tool, ...], form: ToolForm | None, parallel: bool) -> ToolUse:
    choice = request.tool_choice
    name = choice.function.name if isinstance(choice, NamedTool) else None
    schemas = schemas_of([tool for tool in tools if name in (None, tool.function.name)])
    if form is not None and form.opening is not None:
        guide = call_guide(schemas, form.arguments_key)
        return ToolUse(guide, tools, form.opening, lambda: form.parser(schemas), parallel)
    guide = call_guide(schemas, "arguments")
    return ToolUse(guide, tools, parser=lambda: BareJsonParser(schemas, ("arguments",)), parallel=parallel)


def _refused(param: str, message: str) -> ApiError:
    return ApiError(400, message, code="invalid_request", param=param)
