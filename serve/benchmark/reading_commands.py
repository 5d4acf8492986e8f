"""`roundhouse bench list`, `show`, `compare`, `check`, `export`, `import` and `remove`: what was measured, read again."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from roundhouse.build.command_options import HomeOption, JsonOption, home_at, print_json
from roundhouse.build.terminal import answer_console
from roundhouse.errors import UsageError

from ..disk import spelled_out, write_whole
from ..history.reader import RecordState
from .comparing_command import compare_runs
from .finding import RunArgument, RunsArgument, find_run

if TYPE_CHECKING:
    from .store import BenchmarkStore

__all__ = ["add_reading_commands"]

_EXIT_CODES = {"passed": 0, "regressed": 1, "failures": 1, "undecided": 4, "passed in part": 5}
"""2 is a mistake of usage, and 3 a refused plan, whatever the command."""


def add_reading_commands(group: typer.Typer) -> None:
    """Mount what reads runs beside what measures them."""
    group.command("list")(list_runs)
    group.command("show")(show_run)
    group.command("compare")(compare_runs)
    group.command("check")(check_run)
    group.command("export")(export_runs)
    group.command("import")(import_runs)
    group.command("remove")(remove_runs)


def list_runs(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD]...", help="Only runs with each of these in name, model, engine, workload or hardware."),
    ] = None,
    state: Annotated[RecordState | None, typer.Option(help="Only those that ended, or go on, like this.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The newest so many.")] = 50,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """List benchmark runs of this home, newest first; damaged ones are named."""
    from .listing import brief, chosen

    runs, damaged = _store(home).read_all()
    wanted = chosen(runs, words or (), state)
    shown = wanted[:limit]
    if json:
        print_json({"runs": [brief(run) for run in shown], "damaged": damaged})
        return
    console = answer_console()
    if shown:
        from .tables import runs_table

        console.print(runs_table(shown))
    elif not damaged:
        none_yet = "No benchmark runs yet. `roundhouse bench ENGINE` makes one."
        console.print("No run is like that." if words or state else none_yet)
    if len(wanted) > limit:
        console.print(f"{len(wanted) - limit} older ones are not shown: --limit")
    for problem in damaged:
        console.print(f"! {problem}", style="yellow", markup=False)


def show_run(run: RunArgument = "latest", home: HomeOption = None, json: JsonOption = False) -> None:
    """Show one run: what was measured on what, and what came of it. With --json everything that was written down."""
    store = _store(home)
    found = find_run(store, run)
    if json:
        print_json(found.model_dump(mode="json"))
        return
    from .tables import run_view

    answer_console().print(run_view(found, store.records.folder / found.id))


def check_run(
    run: RunArgument,
    baseline: Annotated[str, typer.Option(metavar="RUN|FILE.json", help="What it must not be worse than.")],
    alpha: Annotated[float, typer.Option(min=0.0001, max=0.5, help="How likely a false alarm may be.")] = 0.05,
    tolerance: Annotated[float, typer.Option(min=0, help="A change up to this is none: 0.02 is 2%.")] = 0.02,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Fail when a run is worse than its baseline and its repeats support that.

    Exit code 1: a regression, or more failed requests; 4: so few repeats could not show a regression if there were one; 5: of
    some quantities only: the others have passed.
    """
    from roundhouse.build.extras import require_extra

    if math.isinf(tolerance):
        raise UsageError("--tolerance inf: nothing would be worse than that", hint="Such as --tolerance 0.05, which is 5%.")
    require_extra("serve", only=("numpy",))
    from .checking import check

    store = _store(home)
    checked = check(find_run(store, run), find_run(store, baseline), alpha=alpha, tolerance=tolerance)
    if json:
        print_json(checked.model_dump(mode="json"))
    else:
        from .tables import check_view

        answer_console().print(check_view(checked))
    if code := _EXIT_CODES[checked.verdict]:
        raise typer.Exit(code)


def export_runs(
    runs: RunsArgument,
    format_: Annotated[Literal["json", "csv", "parquet"], typer.Option("--format", help="json holds everything.")] = "json",
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Instead of standard output.")] = None,
    home: HomeOption = None,
) -> None:
    """Write runs as JSON (all of them), or as CSV or Parquet (a row for each point)."""
    from .exporting import export

    store = _store(home)
    content = export([find_run(store, run) for run in dict.fromkeys(runs)], format_)
    if output is not None:
        _write(spelled_out(output), content)
        answer_console().print(f"Wrote {output}: {len(content):,} bytes", markup=False)
        return
    stream = typer.get_binary_stream("stdout")
    if format_ == "parquet" and stream.isatty():
        raise UsageError("Parquet is nothing for a terminal", hint="Say where it goes: -o FILE.parquet")
    stream.write(content)


def _write(output: Path, content: bytes) -> None:
    try:
        if output.exists() and not output.is_file():  # a pipe, say
            output.write_bytes(content)
        else:
            write_whole(output.resolve(), content)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror or error}", hint="Name another file with -o.") from None


def import_runs(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Of `bench export`, aiperf (or its folder), or vLLM's serve benchmark."),
    ],
    server: Annotated[str | None, typer.Option(help="What served, in words, where the files do not say.")] = None,
    model: Annotated[str | None, typer.Option(help="What the model is, where the files do not say.")] = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Take results that were measured elsewhere into this home's history."""
    from .listing import brief, import_files

    taken = import_files(home_at(home), files, server=server, model=model)
    if json:
        print_json([brief(run) for run in taken])
        return
    from .tables import runs_table

    answer_console().print(runs_table(taken))


def remove_runs(
    runs: RunsArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Delete runs with their raw files."""
    from ..history.removing import remove_records
    from .listing import about_run

    remove_records(_store(home).records, runs, about_run, what="runs", yes=yes, json=json)


def _store(home: Path | None) -> BenchmarkStore:
    from .store import BenchmarkStore

    return BenchmarkStore(home_at(home))
