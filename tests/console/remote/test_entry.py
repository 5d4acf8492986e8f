"""Which commands go to a console elsewhere, and what is refused before anything is sent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from roundhouse.console.remote.address import read_token, server_address
from roundhouse.console.remote.entry import is_for_server
from roundhouse.errors import UsageError


@pytest.mark.parametrize(
    ("words", "environment", "elsewhere"),
    [
        ("--server https://a jobs list", {}, True),
        ("--token-file jobs --server=https://a plan x", {}, True),
        ("engines list", {}, False),
        ("engines list", {"ROUNDHOUSE_SERVER": "https://a"}, True),
        ("engines list", {"ROUNDHOUSE_SERVER": ""}, False),
        ("worker", {"ROUNDHOUSE_SERVER": "https://a"}, False),
        ("--version", {"ROUNDHOUSE_SERVER": "https://a"}, False),
        ("build x --name --server", {}, False),
    ],
)
def test_the_option_or_the_variable_chooses_the_commands(words: str, environment: dict[str, str], elsewhere: bool) -> None:
    assert is_for_server(words.split(), environment) is elsewhere


@pytest.mark.parametrize(
    ("url", "insecure", "address"),
    [
        ("https://Name.example/", False, "https://name.example"),
        ("https://name.example:8443", False, "https://name.example:8443"),
        ("http://127.0.0.1:8080", False, "http://127.0.0.1:8080"),
        ("http://[::1]:8080", False, "http://[::1]:8080"),
        ("http://localhost:8080", False, "http://localhost:8080"),
        ("http://10.0.0.5:8080", True, "http://10.0.0.5:8080"),
    ],
)
def test_an_address_is_a_scheme_and_a_place(url: str, insecure: bool, address: str) -> None:
    assert server_address(url, insecure_http=insecure) == address


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://10.0.0.5:8080", "in clear"),
        ("http://localhost.example", "in clear"),
        ("http://127.0.0.1.example", "in clear"),
        ("https://ann:hunter2@name.example", "name or password"),
        ("https://name.example/console", "no address"),
        ("https://name.example?token=x", "no address"),
        ("ftp://name.example", "no address"),
        ("name.example", "no address"),
        ("https://ann:hunter2@name.example/x", "no address"),
        ("https://name.example:port", "no address"),
    ],
)
def test_what_is_no_address_or_would_leak_is_refused(url: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        server_address(url)
    assert "hunter2" not in str(refused.value)


def test_a_token_comes_from_a_file_or_the_environment_and_a_file_that_others_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("rh_of-the-file\n")
    file.chmod(0o644)
    warned: list[str] = []
    environment = {"ROUNDHOUSE_TOKEN": "rh_of-the-environment"}
    assert read_token(None, warned.append, environment) == "rh_of-the-environment"
    assert read_token(file, warned.append, environment) == "rh_of-the-file"
    assert len(warned) == 1
    assert "chmod 600" in warned[0]
    assert "rh_" not in warned[0]
    file.chmod(0o600)
    read_token(file, warned.append, {})
    assert len(warned) == 1


@pytest.mark.parametrize("text", ["", "two words", "rh_ünlike"])
def test_what_is_no_token_is_never_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(UsageError) as refused:
        read_token(file, lambda line: None, {})
    assert text == "" or text not in str(refused.value)
    with pytest.raises(UsageError, match="cannot be read"):
        read_token(tmp_path / "none", lambda line: None, {})
    with pytest.raises(UsageError, match="asks for a token"):
        read_token(None, lambda line: None, {})


_WITHOUT_EXTRAS = """
import sys
for name in ("httpx", "fastapi", "sqlalchemy", "uvicorn", "pwdlib", "argon2", "alembic"):
    sys.modules[name] = None  # as if it were not installed
from roundhouse.__main__ import main
main()
"""


def test_a_base_install_says_which_extra_it_needs() -> None:
    command = [sys.executable, "-c", _WITHOUT_EXTRAS, "--server", "https://name.example", "engines", "list"]
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "ROUNDHOUSE_TOKEN": "rh_x"}
    )
    assert result.returncode == 1
    assert "pip install 'roundhouse-llm[console]'" in result.stderr
    assert "Traceback" not in result.stderr
