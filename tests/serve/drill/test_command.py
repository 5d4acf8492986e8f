"""`roundhouse drill` in its own words."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from roundhouse.__main__ import app
from roundhouse.build.home import Home
from roundhouse.errors import UsageError


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--fault", "gremlin"], "--fault gremlin is unknown; one of none, stale_grant"),
        (["--guard", "tag"], "--guard tag: there is off, tags, tags[+]content"),
        (["--guard", "tags+content", "--guard-sample", "0"], "--guard-sample 0 would compare no page"),
        (["--guard", "tags", "--guard-sample", "0.5"], "--guard-sample belongs to --guard tags[+]content"),
        (["--guard", "tags+content", "--guard-sample", "0.5", "--fault", "freed_early"], "do not depend on --guard-sample"),
    ],
)
def test_what_cannot_be_drilled_is_said(options: list[str], why: str) -> None:
    result = CliRunner().invoke(app, ["drill", *options])
    assert isinstance(result.exception, UsageError)
    with pytest.raises(UsageError, match=why):
        raise result.exception


def test_a_report_has_a_row_for_each_kind_and_level(session_home: Home) -> None:
    options = ["--home", str(session_home.path), "--seed", "4", "--steps", "1", "--json"]
    result = CliRunner().invoke(app, ["drill", *options, "--fault", "rows_permuted", "--fault", "none"])
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert (report["seed"], report["engine"], report["passed"], report["failures"]) == (4, None, True, [])
    found = [(kind["fault"], kind["guard"], kind["guard_sample"], kind["probability"]) for kind in report["kinds"]]
    assert found == [
        (None, "tags", None, 1.0),
        ("rows_permuted", "tags", None, 0.0),
        (None, "tags+content", 1.0, 1.0),
        ("rows_permuted", "tags+content", 1.0, 1.0),
        ("rows_permuted", "tags+content", 0.02, 0.02),
    ]
    assert report["format"] == "roundhouse.drill/1"
    assert all(kind["passed"] for kind in report["kinds"])
    assert [kind["judged"] for kind in report["kinds"][:2]] == [True, False]  # nobody claims that tags see the second
    for kind in report["kinds"]:
        assert {"injected", "effective", "detected", "leaked_tokens", "false_alarms", "delay_steps"} <= set(kind)
    assert report["grants"] == sum(kind["grants"] for kind in report["kinds"]) > 0
