"""``roundhouse::page_guard``, the guard as an operation that torch knows: for any device, and inside torch.compile.

``(Tensor page_table, Tensor page_count, Tensor expected_tags, Tensor page_tags) -> Tensor``: int32
[B, M], [B], [B, M] and [P] → int32 [B], the first bad column of each row or −1. Importing this module
registers it; :func:`use_kernels` lets it run natively on a device.
"""

from __future__ import annotations

from typing import Literal

import torch

from .native_guard import FirstBad
from .torch_guard import check_tables, torch_page_guard

__all__ = ["page_guard", "use_kernels"]

_NAME = "roundhouse::page_guard"
_SCHEMA = "(Tensor page_table, Tensor page_count, Tensor expected_tags, Tensor page_tags) -> Tensor"

# What runs on which device. torch keeps its operations for the whole process, and so this goes with them.
_guards: dict[str, FirstBad] = {"cpu": torch_page_guard, "cuda": torch_page_guard}


def use_kernels(device: Literal["cpu", "cuda"], guard: FirstBad) -> None:
    """Run the operation on ``device`` with another implementation from now on.

    Args:
        device: the kind of device.
        guard: a :class:`roundhouse.plugins.native_guard.CpuGuard` or ``CudaGuard``, or
            :func:`roundhouse.plugins.torch_guard.torch_page_guard`, which it begins with.
    """
    _guards[device] = guard


def page_guard(
    page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: torch.Tensor
) -> torch.Tensor:
    """Call the operation.

    Raises:
        ServeError: the tables do not fit each other.
    """
    first_bad: torch.Tensor = torch.ops.roundhouse.page_guard(page_table, page_count, expected_tags, page_tags)
    return first_bad


def _run(
    page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: torch.Tensor
) -> torch.Tensor:
    return _guards[page_table.device.type](page_table, page_count, expected_tags, page_tags)


def _shape_only(
    page_table: torch.Tensor, page_count: torch.Tensor, expected_tags: torch.Tensor, page_tags: torch.Tensor
) -> torch.Tensor:
    check_tables(page_table, page_count, expected_tags, page_tags)
    return page_count.new_empty(page_count.shape)


torch.library.define(_NAME, _SCHEMA)
torch.library.impl(_NAME, ("cpu", "cuda"))(_run)
torch.library.register_fake(_NAME)(_shape_only)
