"""What a browser is called, from the long line with which it introduces itself."""

from __future__ import annotations

import re

__all__ = ["browser_name"]

_NAMES = (  # most say that they are some of the others too
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)
_PROGRAM = re.compile(r"([\w.-]{1,40})/[\d.]+")


def browser_name(introduction: str) -> str:
    """``Firefox on Linux``, or what a program calls itself; ``unknown`` where it says nothing of use."""
    name = next((name for sign, name in _NAMES if sign in introduction), None)
    system = next((system for sign, system in _SYSTEMS if sign in introduction), None)
    if name is not None:
        return f"{name} on {system}" if system else name
    program = _PROGRAM.match(introduction)
    return program[1] if program else "unknown"
