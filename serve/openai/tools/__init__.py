"""Tool calls: which form a model writes them in, and how they are read out of its text."""

from __future__ import annotations

from .form import ArgumentsDelta, CallDelta, CallParser, Delta, TextDelta, ToolForm, ToolSchemas
from .forms import FORM_NAMES, form_named, form_of_template

__all__ = [
    "FORM_NAMES",
    "ArgumentsDelta",
    "CallDelta",
    "CallParser",
    "Delta",
    "TextDelta",
    "ToolForm",
    "ToolSchemas",
    "form_named",
    "form_of_template",
]
