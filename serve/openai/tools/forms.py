"""Which form a model writes its calls in: what its chat template says, or what a user knows better."""

from __future__ import annotations

from roundhouse.errors import UsageError

from .form import ToolForm
from .glm import GLM
from .hermes import HERMES
from .kimi import KIMI
from .llama3 import LLAMA3

__all__ = ["FORM_NAMES", "form_named", "form_of_template"]

_FORMS = {form.name: form for form in (HERMES, LLAMA3, KIMI, GLM)}
FORM_NAMES = tuple(_FORMS)


def form_named(name: str) -> ToolForm:
    """A form by its name.

    Raises:
        UsageError: there is none.
    """
    if name not in _FORMS:
        raise UsageError(f"there is no tool form {name!r}", hint=f"Known are {', '.join(FORM_NAMES)}.")
    return _FORMS[name]


def form_of_template(template: str) -> ToolForm | None:
    """The form that a chat template teaches its model, from the words that it writes itself; None when it is not known.

    Forms share words: what is asked first is more particular than what follows.
    """
    if "<|tool_calls_section_begin|>" in template or "tool_declare" in template:
        return KIMI
    if "<arg_key>" in template:
        return GLM
    if any(word in template for word in ("<function=", "<tool_calls>", "<tool_sep>")):
        return None  # other forms, which also write <tool_call>
    if "<tool_call>" in template:
        return HERMES
    if "<|start_header_id|>" in template and "ipython" in template:
        return LLAMA3
    return None
