"""Options of a command line: how they are called, how they are typed again, and how one that does not fit is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from roundhouse.errors import UsageError

__all__ = ["OptionNames"]


@dataclass(frozen=True)
class OptionNames:
    """The options that the fields of a model are given by."""

    called_otherwise: Mapping[str, str] = field(default_factory=dict)
    """By field; the others' options are called like their fields: ``--max-seq-len`` for ``max_seq_len``."""

    def of(self, name: object) -> str:
        """The option for a field."""
        return self.called_otherwise.get(str(name), "--" + str(name).replace("_", "-"))

    def typed(self, name: str, value: object) -> list[str]:
        """Words of a command line that give a field a value."""
        option = self.of(name)
        if isinstance(value, bool):
            return [option if value else option.replace("--", "--no-", 1)]
        text = str(value).removesuffix(".0") if isinstance(value, float) else str(value)
        # What begins with a dash would be read as an option.
        return [f"{option}={text}"] if text.startswith("-") else [option, text]

    def misfit(self, error: ValidationError, *, whole: str) -> UsageError:
        """What to tell of values that do not fit.

        Args:
            error: of the model.
            whole: what to call the values together, where none is wrong by itself.
        """
        problem = error.errors()[0]
        message = str(problem["msg"]).removeprefix("Value error, ")
        named = [part for part in problem["loc"] if isinstance(part, str)]
        return UsageError(f"{self.of(named[-1])} {problem['input']}: {message}" if named else f"{whole}: {message}")
