"""Mixtures of experts, under the names that families have for their parts."""

from __future__ import annotations

from .config_reader import ConfigReader
from .shape import MixtureOfExperts

__all__ = ["read_moe"]

_EXPERT_KEYS = ("n_routed_experts", "num_experts", "num_local_experts")


def read_moe(reader: ConfigReader, layers: int) -> MixtureOfExperts | None:
    """The routed experts of a model and the layers that have them, or None for a dense model.

    Raises:
        ModelError: the numbers of experts disagree, or a token takes more experts than there are.
    """
    counts = {key: size for key in _EXPERT_KEYS if (size := reader.optional_size(key))}
    if not counts:
        return None
    if len(set(counts.values())) > 1:
        raise reader.error(f"{', '.join(f'{key} {size}' for key, size in counts.items())} disagree")
    experts, per_token = next(iter(counts.values())), reader.count("num_experts_per_tok")
    if per_token > experts:
        raise reader.error(f"num_experts_per_tok is {per_token}, {next(iter(counts))} only {experts}")
    intermediate = reader.optional_count("moe_intermediate_size") or reader.count("intermediate_size")
    shared = reader.optional_size("n_shared_experts") or 0
    return MixtureOfExperts(
        experts=experts,
        experts_per_token=per_token,
        intermediate=intermediate,
        shared_intermediate=reader.optional_size("shared_expert_intermediate_size") or shared * intermediate,
        layers=_sparse_layers(reader, layers),
    )


def _sparse_layers(reader: ConfigReader, layers: int) -> tuple[int, ...]:
    types = reader.names("mlp_layer_types", length=layers)
    dense_first = reader.optional_size("first_k_dense_replace") or 0
    every = reader.optional_count("moe_layer_freq") or 1
    step, only_dense = reader.optional_count("decoder_sparse_step") or 1, reader.numbers("mlp_only_layers")
    if types is not None:
        if unknown := sorted(set(types) - {"dense", "sparse"}):
            raise reader.error(f"mlp_layer_types names {', '.join(unknown)}, known are dense and sparse")
        return tuple(layer for layer, kind in enumerate(types) if kind == "sparse")
    return tuple(
        layer
        for layer in range(layers)
        if layer >= dense_first and layer % every == 0 and (layer + 1) % step == 0 and layer not in only_dense
    )
