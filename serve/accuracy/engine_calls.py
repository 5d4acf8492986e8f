"""Tool calls of an engine that answers without a server: through its chat template, read in its family's form."""

from __future__ import annotations

from ..openai.tools import ArgumentsDelta, CallDelta, TextDelta, ToolForm
from ..openai.tools.definitions import Tool, schemas_of
from .scorer import CallAnswer, CallQuestion

__all__ = ["calls_of", "tools_of"]


def tools_of(question: CallQuestion) -> list[Tool]:
    """A question's tools, as the front would take them."""
    return [Tool.model_validate(tool) for tool in question.tools]


def calls_of(text: str, form: ToolForm, question: CallQuestion) -> CallAnswer:
    """Read the calls out of an answer, as the front would."""
    parser = form.parser(schemas_of(tools_of(question)))
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    for delta in (*parser.push(text), *parser.finish()):
        match delta:
            case TextDelta():
                pass
            case CallDelta(index=index, name=name):
                names[index] = name
            case ArgumentsDelta(index, fragment):
                arguments[index] = arguments.get(index, "") + fragment
    return CallAnswer(text, tuple((name, arguments.get(index, "")) for index, name in names.items()))
