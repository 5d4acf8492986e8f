"""compose.yaml is one, and its services become healthy in the order in which they need each other."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_words import parse, with_defaults
from dockerfile import read_dockerfile

from roundhouse.serve.export.container import PROBE

FILE = Path(__file__).parents[2] / "compose.yaml"
SERVICES: dict[str, Any] = yaml.safe_load(with_defaults(FILE.read_text()))["services"]
OURS = [name for name in SERVICES if name != "postgres"]


def test_it_keeps_to_the_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_they_wait_for_each_other() -> None:
    waits = {
        name: {other: on["condition"] for other, on in service.get("depends_on", {}).items()}
        for name, service in SERVICES.items()
    }
    assert waits == {
        "postgres": {},
        "console": {"postgres": "service_healthy"},
        "worker": {"console": "service_healthy"},
        "engine": {"worker": "service_healthy"},
        "triton": {"engine": "service_completed_successfully"},
    }


@pytest.mark.parametrize("name", OURS)
def test_commands_and_health_checks_are_ours(name: str) -> None:
    service = SERVICES[name]
    parse(service["command"])
    check = service["healthcheck"]
    if check.get("disable"):
        return
    kind, *words = check["test"]
    assert kind == "CMD"
    if words[0] == "roundhouse":
        parse(words[1:])
    else:
        assert tuple(words[: len(PROBE)]) == PROBE
        assert callable(importlib.import_module(PROBE[-1]).main)


@pytest.mark.parametrize("name", OURS)
def test_they_run_in_an_image_that_there_is_and_keep_what_they_make(name: str) -> None:
    service = SERVICES[name]
    stage = read_dockerfile(FILE.parent / "Dockerfile")[1][service["build"]["target"]]
    assert service["image"] == f"roundhouse:{stage.name}"
    assert service["volumes"] == [f"home:{stage.values('ENV')['ROUNDHOUSE_HOME']}"]
    assert service["build"]["args"].keys() <= stage.values("ARG").keys()


def test_nothing_is_reached_from_elsewhere_and_no_password_is_in_the_file() -> None:
    assert all(port.startswith("127.0.0.1:") for service in SERVICES.values() for port in service.get("ports", ()))
    assert SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"] == "${POSTGRES_PASSWORD:?write it into .env}"
    assert "ports" not in SERVICES["postgres"]
    knowing = [name for name in OURS if "ROUNDHOUSE_DATABASE" in SERVICES[name]["environment"]]
    assert knowing == ["console", "worker"]


def test_what_a_worker_deploys_is_where_the_console_looks_for_it() -> None:
    assert SERVICES["worker"]["network_mode"] == "service:console"
    assert SERVICES["console"]["hostname"]
