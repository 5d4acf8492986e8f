from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home


def test_a_build_under_a_memory_limit_is_refused_before_anything_is_loaded(tiny_engine: Engine, tmp_path: Path) -> None:
    """512 MB is not enough for the libraries alone; the child must say so instead of dying."""
    code = (
        "import sys; from roundhouse.__main__ import main; "
        f"sys.argv = ['roundhouse', 'build', {tiny_engine.manifest.recipe.model!r}, '--home', {str(tmp_path)!r}]; main()"
    )
    limit = 512 * 1024 * 1024
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert result.returncode == 3, result.stderr
    assert "of memory" in result.stderr
    assert "Traceback" not in result.stderr
    from roundhouse.build.store import EngineStore

    assert list(EngineStore(Home(tmp_path))) == []
