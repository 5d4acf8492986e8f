"""Where an export goes: nothing that is there is written over, and a place that cannot be is named before anything is made."""

from __future__ import annotations

from pathlib import Path

from roundhouse.errors import RoundhouseError, UsageError

__all__ = ["require_folder", "require_new_file", "write_new"]

_OTHER = "Remove it, or give another --output."


def require_new_file(path: Path) -> None:
    """See that a file can be made here, in a folder that is there.

    Raises:
        UsageError: it is there already, or is a folder, or its folder is none or missing.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder", hint="Give --output the name of a file.")
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} is there already", hint=_OTHER)
    require_folder(path.parent)
    if not path.parent.exists():
        raise UsageError(
            f"{path} cannot be written: the folder {path.parent} is missing", hint="Make it, or give another --output."
        )


def require_folder(path: Path) -> None:
    """See that this is a folder, or can be made one.

    Raises:
        UsageError: it, or what it would lie in, is a file.
    """
    there = next((each for each in (path, *path.parents) if each.exists()), None)
    if there is not None and not there.is_dir():
        raise UsageError(f"{there} is no folder", hint="Give another --output.")


def write_new(path: Path, text: str) -> None:
    """Make a file.

    Raises:
        UsageError: as :func:`require_new_file`.
        RoundhouseError: it cannot be written.
    """
    require_new_file(path)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} is there already", hint=_OTHER) from None
    except OSError as error:
        raise RoundhouseError(f"{path} cannot be written: {error.strerror}", hint="Give another --output.") from None
