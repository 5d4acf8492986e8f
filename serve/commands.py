"""`roundhouse serve`, `generate` and `demo`."""

from __future__ import annotations

import typer

__all__ = ["add_commands"]


def add_commands(app: typer.Typer) -> None:
    """Mount this room's commands."""
