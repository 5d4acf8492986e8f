"""Writes the parts of the documentation that the code knows: `make docs`. A test holds that they are up to date."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from roundhouse.__main__ import app
from roundhouse.serve.triton.contract import INPUTS, OUTPUTS, TensorSpec
from roundhouse.serve.triton.metrics import METRICS

DOCS = Path(__file__).parent


def generated() -> dict[Path, str]:
    """Every file with generated parts, as it should be."""
    endpoints = DOCS / "endpoints.md"
    text = _between(endpoints.read_text(), "tensors", _tensors())
    text = _between(text, "metrics", _metrics())
    return {DOCS / "commands.md": _commands(), endpoints: text}


def _between(text: str, name: str, content: str) -> str:
    """Replace what stands between ``<!-- name -->`` and ``<!-- /name -->``."""
    block = f"<!-- {name} -->\n{content}\n<!-- /{name} -->"
    return re.sub(rf"<!-- {name} -->(.*?<!-- /{name} -->)?", lambda _: block, text, flags=re.DOTALL)


def _commands() -> str:
    parts = [
        "# Commands",
        "Exit codes: 0 fine, 1 failed, 2 usage, 3 refused by the plan, 130 interrupted.",
        "Answers go to standard output, progress and logs to standard error. This page is written by `make docs`.",
    ]
    for name, command in _leaves("roundhouse", typer.main.get_command(app)):
        arguments = " ".join(p.metavar or p.name.upper() for p in command.params if p.param_type_name == "argument")
        help_text = " ".join((command.help or "").split())
        parts.append(f"## {name} {arguments}".rstrip() + f"\n\n{help_text}")
        rows = [_option(p) for p in command.params if p.param_type_name == "option" and p.name != "help"]
        if rows:
            parts.append("\n".join(["| option | default | |", "| --- | --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"


def _leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for child, inner in command.commands.items():
        yield from _leaves(f"{name} {child}", inner)


def _option(option: Any) -> str:
    default = "" if option.default is None or option.is_flag else f"`{option.default}`"
    return f"| `{option.opts[0]}` | {default} | {option.help or ''} |"


def _tensors() -> str:
    def table(title: str, specs: tuple[TensorSpec, ...]) -> str:
        rows = [f"| `{s.name}` | {s.data_type.removeprefix('TYPE_')}[{s.length}] | {s.what} |" for s in specs]
        return "\n".join([f"| {title} | type | |", "| --- | --- | --- |", *rows])

    return table("input", INPUTS) + "\n\n" + table("output", OUTPUTS)


def _metrics() -> str:
    rows = [f"| `{name}` | {kind} | {what} |" for name, _, kind, what in METRICS]
    return "\n".join(["| metric | kind | |", "| --- | --- | --- |", *rows])


if __name__ == "__main__":
    for path, text in generated().items():
        path.write_text(text)
        sys.stdout.write(f"{path}\n")
