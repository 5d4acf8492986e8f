from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from roundhouse.build.terminal import byte_text
from roundhouse.console.web.formats import (
    FILTERS,
    absolute,
    bytes_text,
    count_text,
    duration,
    iso,
    log_level,
    number_text,
    percent,
    relative,
    sentence,
    short_id,
)

NOW = datetime(2025, 11, 30, 3, 10, 22, tzinfo=UTC)


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 116_600_832, 2**40, 2**55])
def test_bytes_are_written_as_on_the_terminal(count: int) -> None:
    assert bytes_text(count) == byte_text(count)


def test_what_is_not_known_is_a_dash_and_nothing_is_a_zero() -> None:
    for write in (bytes_text, count_text, number_text, percent, duration, relative, absolute, short_id):
        assert write(None) == "—"
    assert [bytes_text(0), count_text(0), number_text(0), percent(0), duration(0)] == ["0 B", "0", "0", "0%", "0 s"]


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1, "100%"),
        (0.9999, ">99.9%"),
        (0.9995, ">99.9%"),
        (0.99949, "99.9%"),
        (0.973, "97.3%"),
        (0.0004, "<0.1%"),
        (0.1, "10.0%"),
    ],
)
def test_only_all_of_it_is_100_percent(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0424, "0.042"), (8.314, "8.31"), (83.14, "83.1"), (1234.5, "1,234"), (-8.314, "-8.31")]
)
def test_measurements_have_about_three_digits(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0321, "32 ms"),
        (0.8, "0.8 s"),
        (9.96, "10 s"),
        (59.6, "1 min"),
        (192.2, "3 min 12 s"),
        (3599.7, "1 h"),
        (7500, "2 h 5 min"),
        (187_200, "2 d 4 h"),
        (-3, "−3.0 s"),
    ],
)
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("there is no page", "There is no page"),
        ("legal, but", "Legal, but"),
        ("it", "It"),
        ("état de choses", "État de choses"),
        ("model.layers.*.mlp.gate_proj has", "model.layers.*.mlp.gate_proj has"),
        ("max_seq_len 9 is", "max_seq_len 9 is"),
        ("job_id: must be", "job_id: must be"),
        ("page: must be", "page: must be"),
        ("int4 is", "int4 is"),
        ("", ""),
    ],
)
def test_a_sentence_begins_with_a_capital_and_an_identifier_stays_as_it_is(text: str, shown: str) -> None:
    assert sentence(text) == shown


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (0.4, "now"),
        (12, "12 s ago"),
        (59.9, "59 s ago"),
        (190, "3 min ago"),
        (7300, "2 h ago"),
        (86400 * 29, "29 d ago"),
        (86400 * 31, "2025-10-30"),
        (-125, "in 2 min"),
    ],
)
def test_moments_are_relative_until_they_are_far(ago: float, text: str) -> None:
    assert relative(NOW - timedelta(seconds=ago), NOW) == text


def test_moments_have_one_clock() -> None:
    elsewhere = NOW.astimezone(tz=None)
    assert absolute(elsewhere) == "2025-11-30 03:10:22 UTC"
    assert iso(elsewhere) == "2025-11-30T03:10:22Z"


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("ERROR: no space left on device", "error"),
        ("Traceback (most recent call last):", "error"),
        ("torch.OutOfMemoryError: 1.2 GiB wanted", "error"),
        ("E1130 03:10:22.123456 1 model.cc:1] failed to load", "error"),
        ("2025-11-30 error: it does not fit", "error"),
        ("Error: it does not fit", "error"),
        ("layer 12: q_proj scale 0.0173, error 0.41%", ""),
        ("no errors in 4,182 checks", ""),
        ("WARNING: lm_head stays bf16", "warning"),
        ("W1130 03:10:22.123456 1 server.cc:2] no GPU", "warning"),
        ("forewarned", ""),
    ],
)
def test_log_lines_that_matter_are_told_from_the_rest(line: str, level: str) -> None:
    assert log_level(line) == level


def test_ids_are_short() -> None:
    assert short_id("3f9a1c0b7d2e4468") == "3f9a1c0b"


def test_filters_have_their_functions_names() -> None:
    assert {name: function.__name__ for name, function in FILTERS.items()} == {name: name for name in FILTERS}
