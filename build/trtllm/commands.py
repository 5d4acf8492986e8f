"""`roundhouse trtllm …`: what is recorded of TensorRT-LLM, for those who maintain it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..command_options import JsonOption, print_json
from ..terminal import answer_console

__all__ = ["trtllm"]

trtllm = typer.Typer(help="What this package knows of TensorRT-LLM's surface.", no_args_is_help=True)


@trtllm.callback()
def _group() -> None:
    """Keeps `record` a command of its own: a single command would take the group's name."""


@trtllm.command()
def record(
    output: Annotated[Path | None, typer.Option("--output", help="Write the new record to this file.")] = None,
    json: JsonOption = False,
) -> None:
    """Record the installed TensorRT-LLM's surface, and tell how it differs from the record that is shipped.

    It is the TensorRT-LLM of ROUNDHOUSE_TRTLLM_PYTHON where that is set.
    """
    from .interpreter import run_there
    from .recording import record_installed, recording_text
    from .upstream import upstream

    given = [*(["--output", str(output)] if output else []), *(["--json"] if json else [])]
    if (there := run_there("trtllm", "record", *given)) is not None:
        text, code = there
        typer.echo(text, nl=False)
        raise typer.Exit(code)
    recording = record_installed()
    if output is not None:
        output.write_text(recording_text(recording.upstream), encoding="utf-8")
    if json:
        print_json({"shipped": upstream().version, "installed": recording.upstream.version, "changes": list(recording.changes)})
        return
    console = answer_console()
    for change in recording.changes:
        console.print(change, markup=False)
    count = f"{len(recording.changes)} differences" if recording.changes else "no difference"
    console.print(
        f"TensorRT-LLM {recording.upstream.version} against the record of {upstream().version}: {count}.", markup=False
    )
