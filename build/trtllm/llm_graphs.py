"""For which sizes of a step upstream records CUDA graphs: ``cuda_graph_config`` of the LLM API.

``TorchLlmArgs`` refuses ``batch_sizes`` beside a ``max_batch_size`` that would give others, and its model engine leaves out
sizes that are more than a step's requests (``_filter_cuda_graph_batch_sizes``).
"""

from __future__ import annotations

from typing import Any

from ..recipe import Recipe

__all__ = ["GRAPH_SIZES", "GRAPH_SIZES_END", "cuda_graphs", "rows_of_a_rank", "sizes_beyond"]

GRAPH_SIZES = "cuda_graph_config.batch_sizes"
"""The option that names sizes one by one."""
GRAPH_SIZES_END = "cuda_graph_config.max_batch_size"
"""The option that names the largest, of which upstream makes a list."""


def rows_of_a_rank(recipe: Recipe) -> int:
    """Requests that one rank runs at once."""
    return -(-recipe.max_batch_size // recipe.tensor_parallel) if recipe.attention_data_parallel else recipe.max_batch_size


def sizes_beyond(sizes: Any, rows: int) -> list[int]:
    """Those of named sizes that no step of so many rows has; none where no sizes are named."""
    return [size for size in sizes if not 1 <= size <= rows] if isinstance(sizes, list) else []


def cuda_graphs(given: Any, rows: int) -> Any:
    """``cuda_graph_config``, as options and the size of a step make it.

    Args:
        given: what ``target_options`` say of it; an empty mapping where they say nothing, None where graphs are off.
        rows: requests of a step at most.

    Returns:
        Sizes that are named, as far as a step has them, and else the largest, of which upstream makes a list.
    """
    if given is None:
        return None
    usual = {"enable_padding": True, "max_batch_size": rows}
    if not given.get("batch_sizes"):
        return usual | given
    beyond = sizes_beyond(given["batch_sizes"], rows)
    kept = sorted({*given["batch_sizes"]} - {*beyond})
    named = {key: value for key, value in given.items() if key != "batch_sizes"}
    return {"enable_padding": True, **named, "batch_sizes": kept} if kept else usual | named
