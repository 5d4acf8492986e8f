"""Which modules of an already quantized input stayed 16-bit: the lists of names that quantizers write into configs."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from functools import cache

from .shape import InputQuantization

__all__ = ["exclusion"]


def exclusion(quantization: InputQuantization | None) -> Callable[[str], bool]:
    """A function that tells of a tensor, by its full name with all numbers, whether its module is on the list.

    A pattern after ``re:`` is a regular expression for the beginning of a module's name. Any other names a module, or one
    that it lies in, by whole words between dots: ``mlp.gate`` is no ``mlp.gate_proj``; ``*`` stands for anything.
    """
    return _matcher(quantization.excluded if quantization else ())


@cache
def _matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    expressions = [re.compile(pattern.removeprefix("re:")) for pattern in patterns if pattern.startswith("re:")]
    words = [translate(f"*.{_in_words(pattern)}.*") for pattern in patterns if not pattern.startswith("re:")]
    named = re.compile("|".join(words)) if words else None

    def matches(name: str) -> bool:
        module = name.removesuffix(".weight")
        if any(expression.match(module) for expression in expressions):
            return True
        return named is not None and named.match(f".{_in_words(module)}.") is not None

    return matches


def _in_words(name: str) -> str:
    """Without the level that a vision tower beside the language model adds to names, in one of two places."""
    return name.replace("language_model.", "")
