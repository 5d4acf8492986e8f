"""`make image`: the steps of the Dockerfile's stages `source` and `cpu` in a clean folder, and what came of them, tried.

There is no container engine where this is developed. What differs from an image is said: Debian's packages and the user are
this machine's.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dockerfile import read_dockerfile
from steps import Image

CHECKOUT = Path(__file__).parents[2]
_LONGEST_START_S = 60.0


def main() -> int:
    """Build, try, and leave nothing behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demo", action="store_true", help="run `roundhouse demo` in it, too (some minutes)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="roundhouse-image-"))
    try:
        image = _build(folder)
        _try(image, demo=options.demo)
    except (subprocess.CalledProcessError, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        shutil.rmtree(folder)
    for command in image.left_out:
        sys.stdout.write(f"left out, needs root: {command}\n")
    sys.stdout.write("the steps of the stage `cpu` work\n")
    return 0


def _build(folder: Path) -> Image:
    """The stage `cpu`, carried out."""
    _, stages = read_dockerfile(CHECKOUT / "Dockerfile")
    arguments = {name: value for name in ("TORCH_INDEX",) if (value := os.environ.get(name))}
    made: dict[str, Image] = {}
    for name in ("source", "cpu"):
        made[name] = Image(stages[name], folder / name, CHECKOUT, dict(made), arguments)
        made[name].build()
    return made["cpu"]


def _try(image: Image, *, demo: bool) -> None:
    """Ask the command line, open the console and probe it as the image's health check does."""
    home = image.place("/home/roundhouse/data")
    home.mkdir(parents=True, exist_ok=True)
    where = "import roundhouse; print(roundhouse.__file__)"
    found = _said(image, "python", "-P", "-c", where).strip()
    if not Path(found).is_relative_to(image.root):
        raise RuntimeError(f"the package comes from {found}, not from the image")
    for command in (("roundhouse", "--version"), ("roundhouse", "doctor"), ("roundhouse", "plan", "demo:smollm2")):
        sys.stdout.write(_said(image, *command))
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


if __name__ == "__main__":
    sys.exit(main())
