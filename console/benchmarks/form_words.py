"""What is wrong with a field of a form, for whoever typed it."""

from __future__ import annotations

from typing import Any

__all__ = ["words_of"]

_NO_NUMBER = {
    "int_parsing": "write a whole number",
    "int_from_float": "write a whole number",
    "int_parsing_size": "write a smaller number",
    "float_parsing": "write a number",
    "too_short": "write at least one",
}
"""By what pydantic calls the problem."""


def words_of(problem: Any) -> str:
    """One of the problems that pydantic tells of, as a sentence that begins small."""
    if problem["type"] in _NO_NUMBER:
        return _NO_NUMBER[problem["type"]]
    return str(problem["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")
