"""Reads what our Dockerfile uses of the language: stages, and instructions with the lines that they go on over."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Instruction", "Stage", "read_dockerfile", "substituted"]

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


@dataclass(frozen=True)
class Instruction:
    """One instruction: ``RUN`` and what stands behind it, on one line."""

    keyword: str
    text: str


@dataclass(frozen=True)
class Stage:
    """One stage, with its base as it is written."""

    name: str
    base: str
    instructions: tuple[Instruction, ...]

    def texts(self, keyword: str) -> list[str]:
        """What stands behind each instruction of this kind."""
        return [each.text for each in self.instructions if each.keyword == keyword]

    def values(self, keyword: str) -> dict[str, str]:
        """What ``ARG`` or ``ENV`` sets, as it is written; an ARG without a default is empty."""
        pairs = [part.partition("=") for text in self.texts(keyword) for part in text.split()]
        return {name: value.strip('"') for name, _, value in pairs}


def read_dockerfile(path: Path) -> tuple[dict[str, str], dict[str, Stage]]:
    """The arguments before the first stage, and the stages by name, in their order."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE)
    lines = [line.strip() for line in re.sub(r"\\\n\s*", "", text).splitlines()]
    found = [Instruction(*line.split(maxsplit=1)) for line in lines if line]
    starts = [at for at, each in enumerate(found) if each.keyword == "FROM"]
    stages = {}
    for begin, end in zip(starts, [*starts[1:], len(found)], strict=True):
        base, _, name = found[begin].text.partition(" AS ")
        stages[name] = Stage(name, base, tuple(found[begin + 1 : end]))
    return Stage("", "", tuple(found[: starts[0]])).values("ARG"), stages


def substituted(text: str, values: dict[str, str]) -> str:
    """A text with its variables filled in, as docker does it outside of RUN; one that is not known is empty."""
    return _VARIABLE.sub(lambda found: values.get(found[1] or found[2], ""), text)
