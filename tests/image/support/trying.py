"""Tries an image whose stage was carried out in a folder: what it installed must work from there, and from nowhere else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from image_steps import Image

__all__ = ["try_image"]

_LONGEST_START_S = 60.0


def try_image(image: Image, *, thoroughly: bool = False, demo: bool = False) -> None:
    """Ask the command line, open the console and probe it as the image's health check does.

    Args:
        image: the stage `cpu`, carried out.
        thoroughly: ask for what needs torch, too.
        demo: run `roundhouse demo` in it, too: some minutes.

    Raises:
        RuntimeError: something is not as it must be.
        CalledProcessError: a command failed.
    """
    home = image.place("/home/roundhouse/data")
    home.mkdir(parents=True, exist_ok=True)
    where = "import roundhouse; print(roundhouse.__file__)"
    found = _said(image, "python", "-P", "-c", where).strip()
    if not Path(found).is_relative_to(image.root):
        raise RuntimeError(f"the package comes from {found}, not from the image")
    for command in (("--version",), *((("doctor",), ("plan", "demo:smollm2")) if thoroughly else ())):
        sys.stdout.write(_said(image, "roundhouse", *command))
    _console(image)
    if demo:
        subprocess.run([_tool(image, "roundhouse"), "demo"], env=image.environment, cwd=home, check=True)


def _console(image: Image) -> None:
    command = [_tool(image, "roundhouse"), "console", "--port", "0", "--no-worker"]
    with subprocess.Popen(command, env=image.environment, cwd=image.root, stdout=subprocess.PIPE, text=True) as console:
        assert console.stdout is not None
        address = console.stdout.readline().removeprefix("console: ").strip()
        until = time.monotonic() + _LONGEST_START_S
        try:
            while not _is_ready(image, address):
                if time.monotonic() > until or console.poll() is not None:
                    raise RuntimeError("the console does not become ready")
                time.sleep(0.5)
        finally:
            console.terminate()
    if _is_ready(image, address):
        raise RuntimeError("the health check passes although the console has ended")
    sys.stdout.write(f"the console was ready at {address}\n")


def _is_ready(image: Image, address: str) -> bool:
    command = [_tool(image, "python"), "-P", "-m", "roundhouse.serve.probe", f"{address}/readyz"]
    return subprocess.run(command, env=image.environment, cwd=image.root, capture_output=True, check=False).returncode == 0


def _said(image: Image, name: str, *arguments: str) -> str:
    command = [_tool(image, name), *arguments]
    return subprocess.run(command, env=image.environment, cwd=image.root, stdout=subprocess.PIPE, text=True, check=True).stdout


def _tool(image: Image, name: str) -> str:
    found = shutil.which(name, path=image.environment["PATH"])
    if found is None or not Path(found).is_relative_to(image.root):
        raise RuntimeError(f"the image has no {name}")
    return found
