"""What the bench's tables show."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))
from spread import IN_PROCESS, TRANSFORMERS, TRITON, Ratio, Spread, Summary
from step_profile import StepProfile
from tables import profile_table, speed_table

from roundhouse.serve.engine.stages import STAGES

BF16, FLOAT32 = TRANSFORMERS


def shown(table: Table) -> list[list[str]]:
    """The lines of a table, as words."""
    out = io.StringIO()
    Console(file=out, width=140).print(table)
    return [line.split() for line in out.getvalue().splitlines() if line.strip()]


def summary(*, noisy: int = 0, decoding: float | None = 400.0, transport: float = 0.5) -> Summary:
    return Summary(
        concurrency=8,
        tokens_per_s={
            IN_PROCESS: Spread(1234.5, 1200.0, 1250.0),
            TRITON: Spread(99.96, 98.0, 101.0),
            BF16: Spread(4.321, 4.0, 5.0),
            FLOAT32: Spread(40.04, 39.0, 41.0),
        },
        noisy={IN_PROCESS: 0, TRITON: noisy, BF16: 0, FLOAT32: 0},
        best_transformers=FLOAT32,
        ratios=(
            Ratio(IN_PROCESS, FLOAT32, Spread(30.862, 29.0, 31.0)),
            Ratio(TRITON, FLOAT32, Spread(2.5, 2.4, 2.6)),
            Ratio(TRITON, IN_PROCESS, Spread(0.08, 0.07, 0.09)),
        ),
        decode_tokens_per_s=None if decoding is None else Spread(decoding, decoding, decoding),
        transport_ms=Spread(transport, transport, transport),
    )


def step(*, others: float = 0.0) -> StepProfile:
    return StepProfile(8, 64, dict.fromkeys(STAGES, 1.0) | {"linears": 11.0}, others)


def test_speeds_and_ratios_stand_above_their_spreads() -> None:
    lines = shown(speed_table([summary()]))
    assert ["8", "1,234", "100.0", "4.32", "40.0", "30.86", "2.50", "0.08"] in lines
    assert ["1,200–1,250", "98.0–101", "4.00–5.00", "39.0–41.0", "29.00–31.00", "2.40–2.60", "0.07–0.09"] in lines
    assert not any("*" in word for line in lines for word in line)


def test_what_was_disturbed_is_marked_and_so_is_every_ratio_of_it() -> None:
    lines = shown(speed_table([summary(noisy=2)]))
    assert ["8", "1,234", "100.0*", "4.32", "40.0", "30.86", "2.50*", "0.08*"] in lines
    assert " ".join(lines[-1]) == "* others kept more than 0.2 cores busy in at least one repeat"


def test_a_profile_names_every_stage_with_its_part_of_the_step() -> None:
    lines = shown(profile_table([step()], [summary()]))
    stages = ["schedule", "prepare", "guard", "attention", "linears", "lm_head", "rest", "sampling", "detokenize", "other"]
    assert [line[0] for line in lines[-3 - len(STAGES) : -3]] == stages
    assert ["linears", "11.00", "55.0%"] in lines
    assert ["rest", "of", "the", "model", "1.00", "5.0%"] in lines
    assert lines[-3:] == [
        ["step,", "clocked", "20.00", "100.0%"],
        ["step,", "not", "clocked", "20.00"],
        ["transport", "0.50", "2.5%"],
    ]


def test_a_profile_says_what_is_not_known_and_what_was_disturbed() -> None:
    lines = shown(profile_table([step(others=0.3)], [summary(decoding=None, transport=-1.0)]))
    assert ["stage", "8", "at", "once*", "%"] in lines
    assert ["step,", "not", "clocked", "–"] in lines
    assert ["transport", "-1.00", "-5.0%"] in lines
    assert " ".join(lines[-1]) == "* others kept more than 0.2 cores busy"
