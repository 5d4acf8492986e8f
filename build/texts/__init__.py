"""The two public-domain texts that ship with Roundhouse (``README.md`` beside them names the sources)."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from roundhouse.errors import UsageError

__all__ = ["HELD_OUT_NAME", "calibration_text", "held_out_text"]

HELD_OUT_NAME = "Alice's Adventures in Wonderland, chapter I"


def calibration_text(path: Path | None) -> str:
    """The user's calibration text, or the shipped one when there is none.

    Raises:
        UsageError: the file cannot be read as UTF-8 text.
    """
    if path is None:
        return files(__package__).joinpath("calibration.txt").read_text(encoding="utf-8")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"calibration text {path} cannot be read: {error}") from None


def held_out_text() -> str:
    """The text quality is measured on. Never used for calibration."""
    return files(__package__).joinpath("held_out.txt").read_text(encoding="utf-8")
