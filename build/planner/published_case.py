"""The settings behind a published number, in the planner's terms: what lay in memory, and what a step read of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from ..models.config import shape_from_config
from ..models.inventory import inventory_from_shape
from ..models.parameters import Inventory, Parameter
from ..models.shape import ModelShape
from ..models.shipped import shipped_config
from .decode import DecodeModel
from .gpus import hardware_called
from .kv_layout import KvLayout, layout_for
from .published_tables import Settings
from .scheme import Scheme
from .sharding import Parallel, kv_heads_of, runtime_copies, stage_parameters, weight_bytes

__all__ = ["Case", "given"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class Case:
    """One entry of settings. Nothing here is fitted: constants that are come from outside."""

    settings: Settings

    @cached_property
    def shape(self) -> ModelShape:
        """The model as its config says."""
        config = shipped_config(self.settings.shape)
        return shape_from_config(config, stored_dtype=None, where=self.settings.shape)

    @cached_property
    def inventory(self) -> Inventory:
        """Every tensor of the model's checkpoint."""
        return inventory_from_shape(self.shape)

    @property
    def checkpoint_bytes(self) -> int:
        """All tensors in the formats of the settings, layers for multi-token prediction included."""
        return weight_bytes(self.inventory.parameters, self._scheme, self.shape, Parallel())

    @cached_property
    def weight_bytes(self) -> int:
        """Weights in memory on one GPU, with the engine's copies of them."""
        return weight_bytes(self._held, self._scheme, self._held_shape, self._parallel)

    @property
    def kv_bytes_per_token(self) -> int:
        """On one GPU, index keys of every layer that held an indexer included."""
        return self._layout(self._held_shape).bytes_per_token

    @property
    def free_bytes(self) -> float:
        """Free on one GPU before anything was loaded."""
        return given(self.settings.free_gib, "free_gib") * 2**30

    def kv_tokens(self, memory_fraction: float) -> float:
        """Tokens that this part of the free memory holds beside the weights; not rounded to pages."""
        return (self.free_bytes * memory_fraction - self.weight_bytes) / self.kv_bytes_per_token

    def memory_fraction_for(self, kv_tokens: float) -> float:
        """The part of the free memory that weights and this many tokens take."""
        return (self.weight_bytes + kv_tokens * self.kv_bytes_per_token) / self.free_bytes

    def decode_model(self) -> DecodeModel:
        """What a step reads: weights as held, and of the cache what the layers with an indexer in use ask for."""
        count = self.settings.indexer_layers
        shape = _with_indexers(self.shape, count.read if count else None)
        return DecodeModel(
            parameters=self._held,
            scheme=self._scheme,
            shape=shape,
            parallel=self._parallel,
            layout=self._layout(shape),
            bandwidth=given(hardware_called(given(self.settings.gpu, "gpu")).bandwidth, "bandwidth"),
        )

    @property
    def _scheme(self) -> Scheme:
        return Scheme(self.settings.routed.stored, self.settings.linear.stored)

    @property
    def _parallel(self) -> Parallel:
        return Parallel(self.settings.tensor_parallel)

    @cached_property
    def _held_shape(self) -> ModelShape:
        count = self.settings.indexer_layers
        return _with_indexers(self.shape, count.held if count else None)

    @cached_property
    def _held(self) -> list[Parameter]:
        shape = self._held_shape
        parameters = (*inventory_from_shape(shape).parameters, *runtime_copies(shape, self.settings.absorbed))
        return stage_parameters(parameters, shape, range(shape.layers))

    def _layout(self, shape: ModelShape) -> KvLayout:
        flashmla = self.settings.kv_layout == "flashmla-fp8"
        return layout_for(shape, self.settings.kv_cache, kv_heads=kv_heads_of(shape, self._parallel), flashmla=flashmla)


def given(value: _T | None, key: str) -> _T:
    """A setting that a quantity cannot do without.

    Raises:
        ValueError: ``published.json`` does not have it.
    """
    if value is None:
        raise ValueError(f"published.json: settings without {key} cannot give this number")
    return value


def _with_indexers(shape: ModelShape, count: int | None) -> ModelShape:
    """The model with this many indexers; which layers own them does not change any byte."""
    if count is None or shape.indexer is None:
        return shape
    return shape.model_copy(update={"indexer": shape.indexer.model_copy(update={"layers": tuple(range(count))})})
