"""One native build for all tests, and the report of what was found on a GPU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gpu_report import Found, machine, report_text
from native_build import NativeBuild, build_natively

REPORT = "ROUNDHOUSE_GPU_REPORT"
"""The environment variable with the file that the report goes to (`make test-gpu`)."""
_found = pytest.StashKey[dict[str, Found]]()


@pytest.fixture(scope="session")
def native_build(tmp_path_factory: pytest.TempPathFactory) -> NativeBuild:
    return build_natively(tmp_path_factory.mktemp("native"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> object:
    """Keep how each test ended, with what it recorded."""
    report: pytest.TestReport = yield
    if report.when == "call" or report.outcome != "passed":
        reason = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""
        numbers = {name: str(value) for name, value in report.user_properties}
        name = item.nodeid.removeprefix("tests/gpu/")
        item.config.stash.setdefault(_found, {})[name] = Found(name, report.outcome, reason, numbers)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the report where one is asked for."""
    if path := os.environ.get(REPORT):
        Path(path).write_text(report_text(session.config.stash.get(_found, {}).values(), machine()))
