"""Finding aiperf. It lives in an environment of its own: what it needs contradicts what Roundhouse needs (numpy 2, say)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from roundhouse.build.home import Home
from roundhouse.errors import SetupError

from ...disk import spelled_out

__all__ = ["PINNED", "VARIABLE", "Aiperf", "clean_environment", "environment_folder", "find_aiperf"]

PINNED = "0.13.0"
"""The version whose configuration and files are known here."""
VARIABLE = "ROUNDHOUSE_AIPERF"

_SLOWEST_START_S = 120.0
_OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "OPENAI_API_KEY")


@dataclass(frozen=True)
class Aiperf:
    """An aiperf that answers."""

    executable: Path
    version: str


def environment_folder(home: Home) -> Path:
    """Where ``roundhouse bench setup`` installs it."""
    return home.path / "tools" / f"aiperf-{PINNED}"


def find_aiperf(home: Home) -> Aiperf:
    """The one that ``$ROUNDHOUSE_AIPERF`` names, else the one installed in the home, else the one on PATH.

    Raises:
        SetupError: there is none, or it does not start.
    """
    named = os.environ.get(VARIABLE)
    installed = environment_folder(home) / "bin" / "aiperf"
    on_path = shutil.which("aiperf")
    if named:
        executable = spelled_out(named)
    elif installed.is_file():
        executable = installed
    elif on_path:
        executable = Path(on_path)
    else:
        hint = "`roundhouse bench setup` installs it into an environment of its own (about 0.5 GB)."
        raise SetupError("aiperf, which makes load over HTTP, is not installed", hint=hint)
    return Aiperf(executable, _version(executable))


def clean_environment() -> dict[str, str]:
    """Environment variables for aiperf: without those that would lead its Python to our packages.

    Offline switches of the Hugging Face hub go as well: with them, aiperf takes the path of a tokenizer's folder for a name.
    """
    return {name: value for name, value in os.environ.items() if name not in _OURS and not name.startswith("AIPERF_")}


def _version(executable: Path) -> str:
    command = [str(executable), "--version"]
    try:
        answer = subprocess.run(
            command, env=clean_environment(), capture_output=True, text=True, timeout=_SLOWEST_START_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        hint = f"Set {VARIABLE} to one that works, or run `roundhouse bench setup`."
        raise SetupError(f"aiperf does not start from {executable}: {reason}", hint=hint) from None
    found = re.search(r"\d+\.\d+[\w.+-]*", answer.stdout)
    if found is None:
        raise SetupError(f"{executable} does not tell a version", hint=f"Is it aiperf? {VARIABLE} may name another one.")
    return found[0]
