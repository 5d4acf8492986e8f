"""What a deployment may be asked to be."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, get_args

import pytest
from pydantic import SecretStr, ValidationError

from roundhouse.console.deployments.settings import DeploymentSecrets, DeploymentSettings, ToolFormName

REMOTE = {"kind": "remote", "triton_url": "http://t:8000", "triton_grpc": "t:8001", "triton_metrics": "http://t:8002/metrics"}


def settings(**given: Any) -> DeploymentSettings:
    return DeploymentSettings(engine_id="e", name="m", **given)


def test_both_kinds_can_be_written_down_and_read_again() -> None:
    for wanted in (settings(overrides={"max_seq_len": 64}, openai=9000), settings(**REMOTE, control_header="key")):
        assert DeploymentSettings.model_validate_json(wanted.model_dump_json()) == wanted


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"http": 8000, "openai": 8000}, "two ports are the same"),
        ({"http": 65536}, "65535"),
        ({"triton_url": "http://t"}, "a Triton server of its own"),
        ({"control_header": "key"}, "a Triton server of its own"),
        ({"kind": "remote"}, "needs the HTTP URL"),
        ({**REMOTE, "grpc": 1}, "has its ports already"),
        ({**REMOTE, "triton_url": "file:///etc/passwd"}, "begin with http"),
        ({**REMOTE, "triton_url": "http://evil/$(id)"}, "no URL"),
        ({**REMOTE, "triton_url": "http://a@b:8000"}, "no URL"),
        ({**REMOTE, "triton_url": "http://t:99999"}, "no URL"),
        ({**REMOTE, "triton_metrics": "http://t:8002/metrics\n"}, "no URL"),
        ({**REMOTE, "triton_grpc": "t"}, "not written like"),
        ({**REMOTE, "triton_grpc": "t:99999"}, "not written like"),
        ({**REMOTE, "triton_grpc": "http://t:8001"}, "not written like"),
        ({"address": "a b"}, "no address or name"),
        ({"address": ""}, "no address or name"),
        ({**REMOTE, "control_header": "a\r\nb"}, "pattern"),
        ({"overrides": {"pages": 3}}, "Extra inputs"),
        ({"secret": "x"}, "Extra inputs"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        settings(**given)


@pytest.mark.parametrize("host", ["gpu-1", "my_triton", "10.0.0.7", "a.b.example", "[::1]"])
def test_hosts_may_be_names_or_addresses(host: str) -> None:
    plain = host.strip("[]")
    settings(
        kind="remote",
        triton_url=f"https://{host}:8000/triton",
        triton_grpc=f"{host}:8001",
        triton_metrics=f"http://{host}/metrics",
    )
    assert settings(address=plain).address == plain


@pytest.mark.parametrize("name", ["", "a b", "a/b", "-a", "a'b", "x" * 64])
def test_names_are_such_as_triton_and_urls_take(name: str) -> None:
    with pytest.raises(ValidationError):
        DeploymentSettings(engine_id="e", name=name)


def test_secrets_do_not_show_by_accident() -> None:
    secrets = DeploymentSecrets(api_key=SecretStr("geheim"))
    assert "geheim" not in f"{secrets!r} {secrets} {secrets.model_dump_json()}"
    assert secrets.in_clear() == {"api_key": "geheim"}


def test_the_forms_of_tool_calls_are_those_that_there_are() -> None:
    from roundhouse.serve.openai.tools.forms import FORM_NAMES

    assert get_args(ToolFormName) == FORM_NAMES


@pytest.mark.parametrize(
    "module",
    ["deployments.actions", "deployments.queries", "deployments.snippets", "deployments.watch", "integrity.queries"],
)
def test_nothing_heavy_comes_with_it(module: str) -> None:
    code = (
        f"import sys, roundhouse.console.{module}; "
        "heavy = {'torch', 'transformers', 'modelopt', 'numpy', 'tritonclient', 'fastapi', 'zmq'} & set(sys.modules); "
        "sys.exit(f'imports {heavy}' if heavy else 0)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
