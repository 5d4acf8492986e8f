"""Rooms import only the rooms below them, inside a room relatively, across rooms absolutely."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("plugins", "build", "serve", "console", "migrations")


def test_the_layers_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("room", ROOMS)
def test_imports_are_relative_inside_a_room_and_absolute_across(room: str) -> None:
    wrong = []
    for path in (ROOT / room).rglob("*.py"):
        depth = len(path.relative_to(ROOT).parts) - 1
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom):
                continue
            if node.level > depth:
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} leaves the room with a relative import")
            if node.level == 0 and (node.module or "").startswith(f"roundhouse.{room}"):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} names its own room absolutely")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", ROOMS)
def test_importing_a_room_costs_nothing_heavy(room: str) -> None:
    code = (
        f"import sys, roundhouse.{room}; "
        "heavy = {'torch', 'transformers', 'modelopt', 'tensorrt_llm', 'numpy', 'tritonclient', 'fastapi'} & set(sys.modules); "
        "sys.exit(f'imports {heavy}' if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_command_line_starts_without_heavy_libraries() -> None:
    code = (
        "import sys, roundhouse.__main__; "
        "heavy = {'torch', 'transformers', 'modelopt', 'numpy', 'tritonclient', 'fastapi', 'zmq'} & set(sys.modules); "
        "sys.exit(f'imports {heavy}' if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
