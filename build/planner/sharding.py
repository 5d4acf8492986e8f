"""What one GPU holds: tensor, expert and pipeline parallelism, and attention data parallelism."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from ..models.parameters import Parameter
from ..models.shape import ModelShape
from ..recipe import Recipe
from .scheme import Scheme
from .support import traits_of

__all__ = [
    "Parallel",
    "kv_heads_of",
    "local_shape",
    "parallel_of",
    "ranks_of",
    "runtime_copies",
    "stage_layers",
    "stage_parameters",
    "weight_bytes",
]

_BUILT_BLOCKS = {"int4_awq": 128, "w4a8_awq": 128, "nvfp4": 16}
"""The largest groups of what is built."""
_ATTENTION_PARTS = ("attention", "absorbed", "indexer")


@dataclass(frozen=True)
class Parallel:
    """How a model is spread: ``tensor`` ranks times ``pipeline`` stages; ``expert`` of the ranks share out experts whole."""

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    attention_data: bool = False
    whole: tuple[str, ...] = ()
    """Parts that every rank holds whole on this target."""
    uneven: tuple[str, ...] = ()
    """Parts that go to fewer ranks where they do not divide: to as many as share out their whole blocks evenly."""
    block: int = 1
    """Elements that share a scale and stay together."""

    @property
    def gpus(self) -> int:
        """GPUs of one deployment."""
        return self.tensor * self.pipeline

    @property
    def attention(self) -> int:
        """Ranks that share one request's attention."""
        return 1 if self.attention_data else self.tensor


def parallel_of(recipe: Recipe, shape: ModelShape) -> Parallel:
    """The spread that a recipe asks for, on its target."""
    traits = traits_of(recipe.target)
    whole = traits.whole_latent if shape.latent else ()
    if recipe.attention_data_parallel:
        whole = (*whole, *traits.whole_attention_data)
    stored = (shape.quantization.group_size if shape.quantization else None) or 1
    return Parallel(
        tensor=recipe.tensor_parallel,
        pipeline=recipe.pipeline_parallel,
        expert=recipe.expert_parallel,
        attention_data=recipe.attention_data_parallel,
        whole=whole,
        uneven=traits.shared_unevenly if shape.latent else (),
        block=stored if recipe.weights == "as_is" else _BUILT_BLOCKS.get(recipe.weights, 1),
    )


def kv_heads_of(shape: ModelShape, parallel: Parallel) -> int:
    """Key/value heads on one rank: at least one, so they are repeated when there are more ranks than heads."""
    return max(1, -(-shape.kv_heads // parallel.attention))


def local_shape(parameter: Parameter, shape: ModelShape, parallel: Parallel) -> tuple[int, ...]:
    """The piece of one copy of a parameter that the fullest rank holds; uneven cuts round up."""
    ranks = ranks_of(parameter, parallel)
    dims = parameter.shape
    if parameter.split == "none" or ranks == 1:
        return dims
    if parameter.split == "kv_heads":
        head = dims[0] // shape.kv_heads
        return (kv_heads_of(shape, parallel) * head, *dims[1:])
    axis = 1 if parameter.split == "inputs" else 0
    return tuple(-(-size // ranks) if index == axis else size for index, size in enumerate(dims))


def local_copies(parameter: Parameter, parallel: Parallel) -> int:
    """How many of a layer's copies (experts) the fullest rank holds."""
    return -(-parameter.copies // parallel.expert) if parameter.part == "routed_expert" else parameter.copies


def ranks_of(parameter: Parameter, parallel: Parallel) -> int:
    """How many ranks cut one copy of this parameter among them."""
    if parameter.part == "routed_expert":
        return max(1, parallel.tensor // parallel.expert)
    if parameter.part in parallel.whole:
        return 1
    if parameter.part in parallel.uneven and parameter.split != "none":
        size = parameter.shape[1 if parameter.split == "inputs" else 0]
        return math.gcd(size // parallel.block, parallel.tensor) if size % parallel.block == 0 else parallel.tensor
    belongs_to_attention = parameter.part in _ATTENTION_PARTS or (parameter.part == "bias" and "attn" in parameter.name)
    return parallel.attention if belongs_to_attention else parallel.tensor


def stage_layers(layers: int, stages: int) -> list[range]:
    """Layers of each pipeline stage; the first stages take one more when they do not divide."""
    size, more = divmod(layers, stages)
    starts = [stage * size + min(stage, more) for stage in range(stages + 1)]
    return [range(starts[stage], starts[stage + 1]) for stage in range(stages)]


def stage_parameters(parameters: Iterable[Parameter], shape: ModelShape, layers: range) -> list[Parameter]:
    """The parameters that the stage with these layers loads: embeddings and towers on the first, the head on the last.

    Layers for multi-token prediction are loaded by nobody.
    """
    first, last = layers.start == 0, layers.stop == shape.layers
    found = []
    for parameter in parameters:
        if parameter.mtp:
            continue
        if parameter.part == "other":
            here = first
        elif parameter.part == "embedding":
            here = first or (last and shape.tied_embeddings)
        elif parameter.layers:
            mine = tuple(layer for layer in parameter.layers if layer in layers)
            if mine:
                found.append(replace(parameter, layers=mine))
            continue
        else:
            here = last
        if here:
            found.append(parameter)
    return found


def runtime_copies(shape: ModelShape, absorbed: Literal["none", "keys", "both"]) -> tuple[Parameter, ...]:
    """Latent attention's kv_b_proj once more in 16 bits, as runtimes multiply it into queries and outputs."""
    latent = shape.latent
    if latent is None or absorbed == "none":
        return ()
    each = latent.qk_nope_head_dim + (latent.v_head_dim if absorbed == "both" else 0)
    dims = (shape.heads * each, latent.kv_lora_rank)
    name = "model.layers.*.self_attn.kv_b_proj (absorbed)"
    return (Parameter(name, dims, "absorbed", "outputs", tuple(range(shape.layers))),)


def weight_bytes(parameters: Iterable[Parameter], scheme: Scheme, shape: ModelShape, parallel: Parallel) -> int:
    """Bytes of weights on the fullest rank, of the given parameters."""
    return sum(
        scheme.bytes_of(parameter, local_shape(parameter, shape, parallel))
        * local_copies(parameter, parallel)
        * max(1, len(parameter.layers))
        for parameter in parameters
    )
