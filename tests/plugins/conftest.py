from __future__ import annotations

import ctypes

import pytest

from roundhouse.build.home import Home
from roundhouse.errors import SetupError
from roundhouse.plugins.native_interface import load_kernels


@pytest.fixture(scope="session")
def kernels(session_home: Home) -> ctypes.CDLL:
    """The native kernels, compiled once for all tests."""
    try:
        return load_kernels(session_home.kernels)
    except SetupError as error:
        pytest.skip(str(error))
