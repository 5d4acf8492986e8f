"""Where services are required, a skipped test is a failed one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("required", "folder", "code"), [("1", "any", 1), ("", "any", 0), ("1", "gpu", 0)])
def test_skipping_fails_where_services_are_required(tmp_path: Path, required: str, folder: str, code: int) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / folder / "test_it.py").write_text("import pytest\n\n\ndef test_it():\n    pytest.skip('no such service')\n")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "ROUNDHOUSE_REQUIRE_SERVICES": required},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == code, result.stdout
