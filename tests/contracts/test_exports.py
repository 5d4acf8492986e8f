"""Every module says what it exports, and what it says exists."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("plugins", "build", "serve", "console", "migrations")
NOT_MODULES = ("__init__.py", "env.py")
"""Alembic runs its env.py, in a context of its own; nothing can import it."""
MODULES = sorted(
    str(path.relative_to(ROOT)) for room in ROOMS for path in (ROOT / room).rglob("*.py") if path.name not in NOT_MODULES
)


def declared(path: Path) -> list[str] | None:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return None


@pytest.mark.parametrize("module", MODULES)
def test_every_module_declares_exports_that_exist(module: str) -> None:
    names = declared(ROOT / module)
    assert names is not None, f"{module} has no __all__"
    loaded = importlib.import_module("roundhouse." + module.removesuffix(".py").replace("/", "."))
    assert [name for name in names if not hasattr(loaded, name)] == []


def test_the_public_error_tree_is_what_it_was() -> None:
    from roundhouse import errors

    assert set(errors.__all__) == {
        "BenchmarkStoppedError",
        "BuildError",
        "EngineError",
        "ModelError",
        "PlanRefusedError",
        "RecipeError",
        "RequestCode",
        "RequestError",
        "RoundhouseError",
        "ServeError",
        "SetupError",
        "UsageError",
        "VerifyError",
    }
