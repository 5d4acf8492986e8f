"""The built wheel and sdist hold every file of every room, under one import name, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("plugins", "build", "serve", "console", "migrations")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    # -P: our own folder build/ must not shadow the tool of that name.
    command = [sys.executable, "-P", "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


def sources() -> set[str]:
    """Every file that git knows in the rooms, as named inside the wheel."""
    listed = subprocess.run(["git", "ls-files", *ROOMS], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return {f"roundhouse/{name}" for name in listed}


def test_the_wheel_holds_every_room(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert sources() - names == set()
    assert {"roundhouse/__init__.py", "roundhouse/__main__.py", "roundhouse/errors.py", "roundhouse/py.typed"} <= names
    assert {name.split("/")[0] for name in names} == {"roundhouse", wheel.name.split("-py3")[0] + ".dist-info"}
    assert {name for name in names if name.endswith((".toml", ".txt"))} >= {
        "roundhouse/build/planner/support.toml",
        "roundhouse/build/texts/calibration.txt",
        "roundhouse/build/texts/held_out.txt",
    }
    console = (
        "templates/base.html",
        "templates/partials/forms.html",
        "static/icons.svg",
        "static/css/tokens.css",
        "static/js/main.js",
    )
    vendored = ("static/vendor/VENDORED.toml", "static/vendor/htmx/htmx.min.js", "static/vendor/uplot/uPlot.esm.js")
    assert {f"roundhouse/console/{name}" for name in (*console, *vendored)} <= names
    native = {name for name in names if name.startswith("roundhouse/plugins/native/")}
    assert native == {f"roundhouse/{path.relative_to(ROOT)}" for path in (ROOT / "plugins/native").rglob("*") if path.is_file()}
    assert {Path(name).suffix for name in native} == {".cpp", ".cu", ".cuh", ".h", ".txt"}


def test_the_sdist_is_enough_to_build_the_wheel(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"pyproject.toml", "README.md", "LICENSE", "build/pipeline.py", "src/roundhouse/errors.py"} <= names
    assert {"plugins/native/attention.cpp", "plugins/native/attention.h"} <= names
    assert not any(name.startswith(("tests/", ".venv/", "dist/")) for name in names)


def test_building_leaves_no_litter_in_our_build_folder(built: Path) -> None:
    listed = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all", "build"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "lib/" not in listed
    assert "bdist" not in listed
