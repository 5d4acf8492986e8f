"""Where aiperf is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from roundhouse.build.home import Home
from roundhouse.errors import SetupError
from roundhouse.serve.benchmark.aiperf.locate import clean_environment, environment_folder, find_aiperf


@pytest.fixture(autouse=True)
def nothing_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ROUNDHOUSE_AIPERF", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")


def executable(path: Path, says: str = "echo 0.13.0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{says}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_without_one_it_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="aiperf, which makes load over HTTP, is not installed") as caught:
        find_aiperf(Home(tmp_path))
    assert "roundhouse bench setup" in str(caught.value.hint)


def test_the_named_one_comes_before_the_installed_one_and_that_before_the_one_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "a home")
    on_path = executable(tmp_path / "path" / "aiperf", "echo aiperf 0.9.1")
    assert find_aiperf(home).executable == on_path
    assert find_aiperf(home).version == "0.9.1"
    installed = executable(environment_folder(home) / "bin" / "aiperf")
    assert find_aiperf(home).executable == installed
    named = executable(tmp_path / "mine", "echo 1.2.3.dev4+x")
    monkeypatch.setenv("ROUNDHOUSE_AIPERF", str(named))
    assert find_aiperf(home).executable == named
    assert find_aiperf(home).version == "1.2.3.dev4+x"


@pytest.mark.parametrize(("says", "why"), [("exit 3", "does not start"), ("echo hello", "does not tell a version")])
def test_one_that_does_not_work_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, why: str) -> None:
    broken = executable(tmp_path / "broken", says)
    monkeypatch.setenv("ROUNDHOUSE_AIPERF", str(broken))
    with pytest.raises(SetupError, match=why) as caught:
        find_aiperf(Home(tmp_path))
    assert str(broken) in caught.value.message


def test_a_named_one_that_is_not_there_is_not_replaced_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path / "path" / "aiperf")
    monkeypatch.setenv("ROUNDHOUSE_AIPERF", str(tmp_path / "nowhere"))
    with pytest.raises(SetupError, match="No such file"):
        find_aiperf(Home(tmp_path))


def test_its_python_does_not_see_our_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/ours")
    monkeypatch.setenv("AIPERF_HTTP_TRUST_ENV", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("LANG", "C.UTF-8")
    environment = clean_environment()
    assert not {"PYTHONPATH", "AIPERF_HTTP_TRUST_ENV", "HF_HUB_OFFLINE"} & environment.keys()
    assert environment["LANG"] == "C.UTF-8"
