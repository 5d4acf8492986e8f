"""Removing records from the command line: what goes is said and asked about before anything does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from roundhouse.build.command_options import print_json
from roundhouse.build.terminal import answer_console, byte_text
from roundhouse.errors import ServeError

from .store import RecordStore

__all__ = ["remove_records"]


def remove_records(
    records: RecordStore, wanted: Sequence[str], about: Callable[[Path], str], *, what: str, yes: bool, json: bool
) -> None:
    """Remove records with all their files.

    Args:
        records: of a home.
        wanted: as people call them.
        about: what a record is about, from its folder, in a line; raises ServeError where it is damaged.
        what: several of them, in words: ``runs``.
        yes: do not ask.
        json: for programs.

    Raises:
        UsageError: there is no such record, or one is being measured.
        typer.Abort: they are to stay.
    """
    folders = list(dict.fromkeys(records.find(each) for each in wanted))
    for folder in folders:
        typer.echo(_told(folder, about), err=True)
    if not yes and not typer.confirm(f"Delete {'it' if len(folders) == 1 else f'these {len(folders)} {what}'}?", err=True):
        raise typer.Abort
    for folder in folders:
        records.remove(folder)
    if json:
        print_json({"removed": [folder.name for folder in folders]})
    else:
        answer_console().print(f"Removed {', '.join(folder.name for folder in folders)}.", markup=False)


def _told(folder: Path, about: Callable[[Path], str]) -> str:
    size = byte_text(sum(map(_size, folder.rglob("*"))))
    raw = sum(path.is_file() for path in (folder / "raw").rglob("*"))
    try:
        return f"{folder.name}: {about(folder)}; {raw} raw files, {size} in all"
    except ServeError:
        return f"{folder.name}: damaged, {size}"


def _size(path: Path) -> int:
    """Of a file, which may be gone by now; of anything else 0."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0
