from __future__ import annotations

import pytest

from roundhouse.build.trtllm import target_verdicts


@pytest.mark.parametrize(
    ("version", "engines", "pytorch"),
    [
        ("1.2.1", True, True),
        ("1.3.0rc20", True, True),
        ("1.3.0rc21", False, True),
        ("1.3.0", False, True),
        ("1.4.0rc1", False, True),
        ("0.9.0", False, False),
        ("nonsense", False, False),
        (None, False, False),
    ],
)
def test_which_targets_a_version_can_run(version: str | None, engines: bool, pytorch: bool) -> None:
    verdicts = target_verdicts(version)
    assert (verdicts["tensorrt"] is None, verdicts["trtllm-pytorch"] is None) == (engines, pytorch)


def test_a_version_without_engines_names_the_target_that_works() -> None:
    assert "use the target trtllm-pytorch" in str(target_verdicts("1.3.0")["tensorrt"])
