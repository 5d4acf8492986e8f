from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

# `watching` holds plain functions that tests import by name; importlib mode puts no test folder on the path.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The stand-in for ``triton_python_backend_utils``, importable under that name."""
    name = "triton_python_backend_utils"
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("fake_triton.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module
