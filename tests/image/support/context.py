"""What `docker build` would send of a folder, by its .dockerignore."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath

__all__ = ["files_sent", "is_sent"]


def files_sent(root: Path) -> Iterator[str]:
    """Every file of a checkout that comes into the context: what git knows, or would."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    return (name for name in sorted(listed) if is_sent(root, name) and (root / name).is_file())


def is_sent(root: Path, name: str) -> bool:
    """Whether a file comes into the context: the last pattern that fits it, or a folder above it, decides."""
    parts = PurePosixPath(name).parts
    sent = True
    for pattern in _patterns(root):
        wanted = tuple(pattern.removeprefix("!").split("/"))
        if any(_fits(parts[:length], wanted) for length in range(1, len(parts) + 1)):
            sent = pattern.startswith("!")
    return sent


@cache
def _patterns(root: Path) -> tuple[str, ...]:
    lines = (root / ".dockerignore").read_text().splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def _fits(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether a path is a pattern's; ``**`` stands for any number of folders."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(parts[skipped:], pattern[1:]) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])
