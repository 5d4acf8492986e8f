from __future__ import annotations

from pathlib import Path

import pytest

from roundhouse.errors import SetupError
from roundhouse.serve.trtllm_guard.settings import settings_from


def test_without_variables_rank_0_answers_on_this_machine_only() -> None:
    settings = settings_from({"ROUNDHOUSE_HOME": "/home/x", "PATH": "/bin", "ROUNDHOUSE_GUARD_PLUGIN": "/opt/of-builds.so"})
    assert settings.address == ("127.0.0.1", 8003)
    assert (settings.engine, settings.home, settings.library) == ("", None, None)


def test_every_field_is_a_variable() -> None:
    settings = settings_from(
        {
            "ROUNDHOUSE_GUARD_ENGINE": "14cadfd1",
            "ROUNDHOUSE_GUARD_METRICS": "0.0.0.0:8103",
            "ROUNDHOUSE_GUARD_HOME": "/data/home",
            "ROUNDHOUSE_GUARD_LIBRARY": "/opt/guard.so",
            "ROUNDHOUSE_GUARD_WAIT_S": "60",
        }
    )
    assert (settings.engine, settings.address, settings.wait_s) == ("14cadfd1", ("0.0.0.0", 8103), 60.0)
    assert (settings.home, settings.library) == (Path("/data/home"), Path("/opt/guard.so"))
    assert settings_from({"ROUNDHOUSE_GUARD_METRICS": "[::1]:80"}).address == ("::1", 80)


def test_an_unknown_variable_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(SetupError, match="ROUNDHOUSE_GUARD_METRIC is not known; the nearest is ROUNDHOUSE_GUARD_METRICS"):
        settings_from({"ROUNDHOUSE_GUARD_METRIC": "0.0.0.0:8003"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("METRICS", "8003"),
        ("METRICS", ":8003"),
        ("METRICS", "x:http"),
        ("METRICS", "x:70000"),
        ("WAIT_S", "soon"),
        ("WAIT_S", "0"),
    ],
)
def test_a_wrong_value_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(SetupError, match=f"ROUNDHOUSE_GUARD_{name}"):
        settings_from({f"ROUNDHOUSE_GUARD_{name}": value})
