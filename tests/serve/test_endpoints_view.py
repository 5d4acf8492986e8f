"""What `serve` shows once it is ready."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from roundhouse.serve.addresses import Endpoints
from roundhouse.serve.endpoints_view import endpoints_json, endpoints_text


def endpoints(*models: str, **fields: Any) -> Endpoints:
    where = {"http": "http://h:1", "grpc": "h:2", "metrics": "http://h:3/metrics", "openai": "http://h:4/v1"}
    return Endpoints(**{"model": models[0], "models": models, "chat": True, **where, **fields})


def curl(shown: str) -> list[str]:
    """The words of the command that asks the OpenAI front."""
    (line,) = (line for line in shown.splitlines() if "curl http://h:4" in line)
    return shlex.split(line)


@pytest.mark.parametrize("keyed", [False, True])
def test_the_example_has_a_key_where_one_is_wanted(keyed: bool) -> None:
    assert ("authorization: Bearer KEY" in curl(endpoints_text(endpoints("a"), keyed=keyed))) == keyed


def test_the_example_fits_the_model() -> None:
    for chat, path, field in ((True, "chat/completions", "messages"), (False, "completions", "prompt")):
        command = curl(endpoints_text(endpoints("a", "b", chat=chat), keyed=False))
        assert command[1] == f"http://h:4/v1/{path}"
        body = json.loads(command[command.index("-d") + 1])
        assert body["model"] == "a"
        assert field in body


@pytest.mark.parametrize(("models", "headline"), [(("a",), "a is ready."), (("a", "b"), "a, b are ready.")])
def test_all_models_are_ready(models: tuple[str, ...], headline: str) -> None:
    assert endpoints_text(endpoints(*models), keyed=False).splitlines()[0] == headline


def test_the_key_to_models_is_shown_where_there_is_one() -> None:
    assert "roundhouse-control: secret" in endpoints_text(endpoints("a", control_key="secret"), keyed=False)
    assert "roundhouse-control" not in endpoints_text(endpoints("a"), keyed=False)


def test_programs_get_one_line() -> None:
    (line,) = endpoints_json(endpoints("a", "b")).splitlines()
    assert json.loads(line)["models"] == ["a", "b"]
