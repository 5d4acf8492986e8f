"""Every guard against the plain definition, on fresh random inputs, broken ones included."""

from __future__ import annotations

from typing import Any

import torch
from guard_tables import tables
from hypothesis import given

from roundhouse.plugins.guard import TorchPageGuard
from roundhouse.plugins.page_tag import first_bad_columns


def one_by_one(table: Any, count: Any, expected: Any, tags: Any) -> list[int]:
    """The definition once more, cell by cell."""
    found = []
    for row in range(len(table)):
        columns = len(table[row])
        first = 0 if count[row] < 0 else -1
        for column in range(min(int(count[row]), columns)):
            page = table[row][column]
            if not 0 <= page < len(tags) or tags[page] != expected[row][column]:
                first = column
                break
        else:
            if count[row] > columns:
                first = columns
        found.append(first)
    return found


@given(tables())
def test_the_definition_agrees_with_a_cell_by_cell_loop(inputs: Any) -> None:
    assert first_bad_columns(*inputs).tolist() == one_by_one(*inputs)


@given(tables())
def test_the_torch_guard_agrees_with_the_definition(inputs: Any) -> None:
    table, count, expected, tags = inputs
    first = first_bad_columns(*inputs)
    bad = TorchPageGuard().bad_rows(torch.from_numpy(table), torch.from_numpy(count), torch.from_numpy(expected), tags)
    assert bad == [(row, column) for row, column in enumerate(first.tolist()) if column >= 0]
