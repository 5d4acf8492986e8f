"""The command line. Each room mounts its own commands; heavy libraries load when a command needs them."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from roundhouse import __version__
from roundhouse.build.commands import add_commands as add_build_commands
from roundhouse.console.commands import add_commands as add_console_commands
from roundhouse.console.remote.entry import is_for_server
from roundhouse.errors import RoundhouseError
from roundhouse.serve.commands import add_commands as add_serve_commands
from roundhouse.serve.threads import SPIN_COUNT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roundhouse.build.home import Home
    from roundhouse.build.planner.decode import MeasuredRun
    from roundhouse.build.planner.plan import Plan

__all__ = ["app", "main"]

app = typer.Typer(
    name="roundhouse",
    help="Plan, build, inspect and serve quantized engines of open models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


_MISPLACED = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)
"""What more space would not change."""


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    _server: str = typer.Option(
        "",
        "--server",
        metavar="URL",
        help="Another console; `roundhouse --server URL --help` says what it can do.",
    ),
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def _measured(home: Home, plan: Plan) -> Sequence[MeasuredRun]:
    """What the home's benchmarks say of a plan's engine. Where there are none, what reads them is not loaded."""
    if not (home.path / "benchmarks").is_dir():
        return ()
    from roundhouse.serve.benchmark.calibration import measured_in

    return measured_in(home, plan)


add_build_commands(app, measured=_measured)
add_serve_commands(app)
add_console_commands(app)


def main() -> None:
    """Run the command line: exit codes 0 fine, 1 failed, 2 usage, 3 refused by the plan, 130 interrupted."""
    # For this process and all that it starts: what is said here first is what an engine's process finds.
    os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal without Unicode gets question marks, not a traceback
        sys.stdout.reconfigure(errors="replace")
    try:
        _run()
    except RoundhouseError as error:
        _show(error)
        sys.exit(error.exit_code)
    except OSError as error:
        # A folder that cannot be written, a full disk: the machine's fault or the user's, with its name in the message.
        _show(_told(error))
        sys.exit(1)
    except KeyboardInterrupt:
        _show(RoundhouseError("interrupted"))
        sys.exit(130)


def _told(error: OSError) -> RoundhouseError:
    if error.errno in _MISPLACED and error.filename:
        return RoundhouseError(f"{error.filename}: {error.strerror}", hint="Nothing is half-written. Choose another place.")
    return RoundhouseError(str(error), hint="Nothing is half-written. Free space or choose another folder.")


def _run() -> None:
    """A command for this machine, or one for a console elsewhere."""
    if not is_for_server(sys.argv[1:], os.environ):
        app()
        return
    from roundhouse.console.remote.app import app as for_server

    for_server(prog_name="roundhouse --server URL")


def _show(error: RoundhouseError) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print("error:", style="bold red", end=" ")
    console.print(error.message, markup=False)
    if error.hint:
        console.print(error.hint, style="dim", markup=False)


if __name__ == "__main__":
    main()
