"""Says what was asked for, where nobody waits for its end; and lists that are one part of a longer one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer
from pydantic import BaseModel

from roundhouse.build.command_options import print_json
from roundhouse.build.terminal import answer_console

if TYPE_CHECKING:
    from rich.table import Table

    from ..paging import Paged
    from .client import Client

__all__ = ["print_record", "show_list", "tell_queued"]


def print_record(record: BaseModel | Sequence[BaseModel]) -> None:
    """One record, or several, as JSON."""
    many = record if isinstance(record, Sequence) else (record,)
    values: list[Any] = [each.model_dump(mode="json", by_alias=True) for each in many]
    print_json(values if isinstance(record, Sequence) else values[0])


def tell_queued(client: Client, jobs: Sequence[int], *, json: bool, answer: BaseModel | Sequence[BaseModel]) -> None:
    """Which jobs wait now, and how to see what becomes of them."""
    if json:
        print_record(answer)
        return
    for job in jobs:
        command = f"roundhouse --server {client.server} jobs log {job} --follow"
        answer_console().print(f"job {job} is in line: {command}", markup=False, soft_wrap=True)


def show_list(paged: Paged[Any], table: Table, *, nothing: str) -> None:
    """A part of a list, and how much more there is."""
    if not paged.total:
        answer_console().print(nothing, markup=False)
        return
    answer_console().print(table)
    if paged.pages > 1:
        typer.echo(f"page {paged.page} of {paged.pages}, {paged.total:,} in all; --page shows others", err=True)
