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
from pathlib import Path

from dockerfile import read_dockerfile
from image_steps import Image
from trying import try_image

CHECKOUT = Path(__file__).parents[2]


def main() -> int:
    """Build, try, and leave nothing behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demo", action="store_true", help="run `roundhouse demo` in it, too (some minutes)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="roundhouse-image-"))
    try:
        image = _build(folder)
        try_image(image, thoroughly=True, demo=options.demo)
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


if __name__ == "__main__":
    sys.exit(main())
