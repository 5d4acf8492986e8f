"""A group of commands of which one is meant when none is named."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

__all__ = ["group_with_default"]


def group_with_default(first: str) -> type[TyperGroup]:
    """A class of groups for ``typer.Typer(cls=…)``: ``group WORD`` is ``group FIRST WORD`` where WORD is no command.

    Args:
        first: the command that is meant.
    """

    class GroupWithDefault(TyperGroup):
        unnamed = first

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            own = [option for parameter in self.get_params(ctx) for option in parameter.opts]
            if args and args[0] not in self.commands and args[0] not in ("--help", *own):
                args = [self.unnamed, *args]
            return super().parse_args(ctx, args)

    return GroupWithDefault
