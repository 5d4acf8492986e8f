"""One native build for all tests."""

from __future__ import annotations

import pytest
from native_build import NativeBuild, build_natively


@pytest.fixture(scope="session")
def native_build(tmp_path_factory: pytest.TempPathFactory) -> NativeBuild:
    return build_natively(tmp_path_factory.mktemp("native"))
