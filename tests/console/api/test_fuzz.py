"""Anything that the API's description allows, and much that it does not: every answer is one that is described."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from populated import Populated, populate
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from roundhouse.build.home import Home
from roundhouse.console.database.database import Database
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.web.api.description import describe
from roundhouse.console.web.app import create_app

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 5
"""Of each operation; drawn alike each time."""


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: str(mode.value))
def test_every_operation_answers_as_described(database: Database, tmp_path: Path, mode: GenerationMode) -> None:
    home = Home(tmp_path / "home")
    there = populate(database, home)
    app = create_app(ConsoleSettings(home=home), database)
    schema = schemathesis.openapi.from_dict(describe(app))
    schema.app = app
    problems, answered = [], set[int]()
    for found in schema.get_all_operations():
        operation = found.ok()
        try:
            answered |= statuses_of(operation, there, mode)
        except Exception as error:  # every one of them, not only the first
            problems.append(f"{operation.label}: {error}")
    assert not problems, "\n\n".join(problems)
    assert answered >= ({200, 202, 404} if mode is GenerationMode.POSITIVE else {422})


def statuses_of(operation: Any, there: Populated, mode: GenerationMode) -> set[int]:
    """Ask for one operation in many ways; returns what it was answered with."""
    checks = [*CHECKS, negative_data_rejection] if mode is GenerationMode.NEGATIVE else CHECKS
    met = set[int]()

    @settings(max_examples=EXAMPLES, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode), at_home=st.booleans())
    def answers(case: Any, at_home: bool) -> None:
        if at_home and mode is GenerationMode.POSITIVE:  # something that is there
            case.path_parameters = {name: there.known.get(name, value) for name, value in case.path_parameters.items()}
        case.cookies = {}  # a cookie is a login: scripts of our pages send more with it
        response = case.call(base_url="http://127.0.0.1", headers={"authorization": f"Bearer {there.token}"})
        met.add(response.status_code)
        case.validate_response(response, checks=checks)

    answers()
    return met
