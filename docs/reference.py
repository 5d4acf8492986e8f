"""Writes the parts of the documentation that the code knows: `make docs`. A test holds that they are up to date."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from roundhouse.__main__ import app
from roundhouse.build.planner.report import json_schema
from roundhouse.console.remote.app import app as remote_app
from roundhouse.console.web.routes import api_description
from roundhouse.serve.drill.kinds import KINDS
from roundhouse.serve.triton.contract import INPUTS, OUTPUTS, TensorSpec
from roundhouse.serve.triton.metrics import METRICS

DOCS = Path(__file__).parent
_ELSEWHERE = """\
With `--server`, or `ROUNDHOUSE_SERVER`, these are done by the console there and its workers; models and engines are those of
its machines. `ROUNDHOUSE_SERVER` moves only commands that are listed here. The token comes from `ROUNDHOUSE_TOKEN` or a file.\
"""


def generated() -> dict[Path, str]:
    """Every file with generated parts, as it should be."""
    endpoints = DOCS / "endpoints.md"
    text = _between(endpoints.read_text(), "tensors", _tensors())
    text = _between(text, "metrics", _metrics())
    tags = DOCS / "page-tags.md"
    planning, schema = DOCS / "planning.md", json_schema()
    return {
        DOCS / "api.md": _between((DOCS / "api.md").read_text(), "operations", _operations()),
        DOCS / "commands.md": _commands(),
        endpoints: text,
        tags: _between(tags.read_text(), "kinds", _kinds()),
        planning: _between(planning.read_text(), "plan-keys", _plan_keys(schema)),
        DOCS / "plan-schema.json": json.dumps(schema, indent=2) + "\n",
    }


def _between(text: str, name: str, content: str) -> str:
    """Replace what stands between ``<!-- name -->`` and ``<!-- /name -->``."""
    block = f"<!-- {name} -->\n{content}\n<!-- /{name} -->"
    return re.sub(rf"<!-- {name} -->(.*?<!-- /{name} -->)?", lambda _: block, text, flags=re.DOTALL)


def _operations() -> str:
    rows = []
    for path, operations in api_description()["paths"].items():
        for method, operation in operations.items():
            scopes = operation["x-scope"].replace(" or ", "` or `")
            rows.append(f"| `{method.upper()} {path}` | `{scopes}` | {operation['summary']} |")
    return "\n".join(["| operation | scope | |", "| --- | --- | --- |", *rows])


def _commands() -> str:
    parts = [
        "# Commands",
        "Exit codes: 0 fine, 1 failed, 2 usage, 3 refused by the plan, 4 undecided, 5 passed in part, 130 interrupted.",
        "Answers go to standard output, progress and logs to standard error. This page is written by `make docs`.",
    ]
    parts += _described("roundhouse", typer.main.get_command(app))
    remote = typer.main.get_command(remote_app)
    parts += [
        "# Commands for a console elsewhere",
        _ELSEWHERE,
        _options(remote),
        *_described("roundhouse --server URL", remote),
    ]
    return "\n\n".join(parts) + "\n"


def _described(start: str, group: Any) -> list[str]:
    parts = []
    for name, command in _leaves(start, group):
        arguments = " ".join(p.metavar or p.name.upper() for p in command.params if p.param_type_name == "argument")
        help_text = " ".join((command.help or "").split())
        parts.append(f"## {name} {arguments}".rstrip() + f"\n\n{help_text}")
        if options := _options(command):
            parts.append(options)
    return parts


def _options(command: Any) -> str:
    rows = [_option(p) for p in command.params if p.param_type_name == "option" and p.name != "help"]
    return "\n".join(["| option | default | |", "| --- | --- | --- |", *rows]) if rows else ""


def _leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for child, inner in command.commands.items():
        yield from _leaves(f"{name} {child}", inner)


def _option(option: Any) -> str:
    default = "" if option.default is None or option.is_flag else f"`{option.default}`"
    return f"| `{option.opts[0]}` | {default} | {option.help or ''} |"


def _kinds() -> str:
    rows = [f"| `{kind.name}` | {kind.what} | {kind.seen_by} |" for kind in KINDS.values()]
    return "\n".join(["| fault | | seen by |", "| --- | --- | --- |", *rows])


def _tensors() -> str:
    def table(title: str, specs: tuple[TensorSpec, ...]) -> str:
        rows = [f"| `{s.name}` | {s.data_type.removeprefix('TYPE_')}[{s.length}] | {s.what} |" for s in specs]
        return "\n".join([f"| {title} | type | |", "| --- | --- | --- |", *rows])

    return table("input", INPUTS) + "\n\n" + table("output", OUTPUTS)


def _metrics() -> str:
    rows = [f"| `{name}` | {kind} | {what} |" for name, _, kind, what in METRICS]
    return "\n".join(["| metric | kind | |", "| --- | --- | --- |", *rows])


def _plan_keys(schema: dict[str, Any]) -> str:
    """A table of a plan's keys, and one for each of its parts after the one that names it first."""
    sections = []
    for name in dict.fromkeys(_with_parts(schema["$defs"], "PlanReport")):
        part = schema["$defs"][name]
        heading = "A plan" if name == "PlanReport" else f"`{name.removesuffix('Report')}`"
        rows = [f"| `{key}` | {_type(of)} | {of['description']} |" for key, of in part["properties"].items()]
        table = "\n".join(["| key | type | |", "| --- | --- | --- |", *rows])
        sections.append(f"### {heading}\n\n{part['description']}\n\n{table}")
    return "\n\n".join(sections)


def _with_parts(parts: dict[str, Any], name: str) -> Iterator[str]:
    yield name
    for inner in re.findall(r"#/\$defs/(\w+Report)", json.dumps(parts[name])):
        yield from _with_parts(parts, inner)


def _type(of: dict[str, Any]) -> str:
    if "anyOf" in of:
        return " or ".join(_type(one) for one in of["anyOf"])
    if "$ref" in of:
        name = of["$ref"].rpartition("/")[2]
        return "[recipe](recipes.md)" if name == "Recipe" else f"`{name.removesuffix('Report')}`"
    return f"array of {_type(of['items'])}" if of["type"] == "array" else str(of["type"])


if __name__ == "__main__":
    for path, text in generated().items():
        path.write_text(text)
        sys.stdout.write(f"{path}\n")
