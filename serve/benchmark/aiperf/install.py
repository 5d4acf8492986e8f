"""Installing aiperf into an environment of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path

from roundhouse.build.home import Home
from roundhouse.errors import SetupError

from ...disk import writing
from .locate import PINNED, Aiperf, clean_environment, environment_folder, find_aiperf

__all__ = ["install_aiperf"]

_LAST_WORDS = 15
_REQUIREMENTS = files(__package__).joinpath("requirements.txt")


def install_aiperf(home: Home, say: Callable[[str], None]) -> Aiperf:
    """Install aiperf where :func:`find_aiperf` finds it, unless it is there. A set-up that is killed leaves nothing half.

    Args:
        home: it comes to lie in ``tools/``.
        say: hears what goes on, a line at a time.

    Raises:
        SetupError: pip cannot install it, as without a network.
        ServeError: it cannot be written.
    """
    folder = environment_folder(home)
    if not _is_there(folder):
        with _alone(folder, say):
            if not _is_there(folder):
                say(f"Installing aiperf {PINNED} with what it needs into {folder}: about 0.5 GB, in a few minutes.")
                _make(folder, say)
    aiperf = find_aiperf(home)
    say(f"aiperf {aiperf.version} is at {aiperf.executable}.")
    return aiperf


def _is_there(folder: Path) -> bool:
    return (folder / "bin" / "aiperf").is_file()


@contextlib.contextmanager
def _alone(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """While nobody else makes this environment: each would remove what the other has made so far."""
    with writing("aiperf's environment", folder.parent, variable="ROUNDHOUSE_HOME"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder.with_name(f".{folder.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up installs aiperf there: waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _make(folder: Path, say: Callable[[str], None]) -> None:
    """Make the environment under another name, and give it its own when it is whole."""
    making = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.new")
    with writing("aiperf's environment", folder.parent, variable="ROUNDHOUSE_HOME"):
        for left in folder.parent.glob(f".{folder.name}.*.new"):
            shutil.rmtree(left, ignore_errors=True)
    try:
        _run([sys.executable, "-m", "venv", str(making)], say)
        with as_file(_REQUIREMENTS) as pinned:
            # All that it needs is in the list, so nothing newer comes in by itself.
            options = ["-q", "--no-deps", "--disable-pip-version-check", "--progress-bar", "off", "--no-input"]
            install = [str(making / "bin" / "python"), "-m", "pip", "install", *options]
            _run([*install, "-r", str(pinned)], say)
        with writing("aiperf's environment", folder.parent, variable="ROUNDHOUSE_HOME"):
            for script in (making / "bin").iterdir():
                _rename_within(script, making, folder)
            shutil.rmtree(folder, ignore_errors=True)
            making.rename(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _run(command: Sequence[str], say: Callable[[str], None]) -> None:
    """Run a step, relaying what it says."""
    last: list[str] = []
    try:
        process = subprocess.Popen(
            command, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
    except OSError as error:
        raise SetupError(f"{command[0]} could not be started: {error.strerror}") from None
    with process:
        for line in process.stdout or ():
            say(line.rstrip())
            last = [*last, line.rstrip()][-_LAST_WORDS:]
    if process.returncode != 0:
        wrong = next((line for line in last if line.startswith("ERROR")), last[-1] if last else "it said nothing")
        hint = "It needs pip and a package index: behind a proxy or a mirror, PIP_INDEX_URL names one."
        raise SetupError(f"aiperf could not be installed: {wrong.removeprefix('ERROR: ')}", hint=hint)


def _rename_within(script: Path, old: Path, new: Path) -> None:
    """Scripts of an environment begin with its path."""
    if script.is_symlink() or not script.is_file():
        return
    content = script.read_bytes()
    if str(old).encode() in content:
        script.write_bytes(content.replace(str(old).encode(), str(new).encode()))
