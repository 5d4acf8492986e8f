"""Does ``config.json`` of a TensorRT-LLM checkpoint say what its tensors are? Read from the files alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["config_problems", "mapping_problems"]

_ALGORITHMS = {"torch.int8": "W4A16_AWQ", "torch.float8_e4m3fn": "FP8"}
"""What the weights of each type are; others are not quantized."""
_LAYER = "transformer.layers.0"


def config_problems(config: Mapping[str, Any], own: Mapping[str, torch.Tensor]) -> list[str]:
    """What a config says otherwise than the first layer of a rank, and its embedding, are.

    Args:
        config: the checkpoint's.
        own: tensors of one rank; every rank has a layer.
    """
    return [
        f"config.json says {key} {said!r}, and its tensors {found!r}"
        for key, said, found in _facts(config, own)
        if said != found
    ]


def mapping_problems(config: Mapping[str, Any], layers: list[int]) -> list[str]:
    """What a config's mapping says otherwise than the files of the ranks.

    Args:
        config: the checkpoint's.
        layers: how many layers each rank's file has, in the order of ranks.
    """
    mapping = config["mapping"]
    tensor, stages = mapping["tp_size"], mapping["pp_size"]
    problems = []
    if not mapping["world_size"] == tensor * stages == len(layers):
        problems.append(f"config.json says mapping {mapping}, and there are {len(layers)} ranks")
    elif (held := sum(layers[::tensor])) != config["num_hidden_layers"]:
        problems.append(f"config.json says {config['num_hidden_layers']} layers, and the stages have {held}")
    return problems


def _facts(config: Mapping[str, Any], own: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, Any, Any]]:
    quantization = config["quantization"]
    qkv, name = own.get(f"{_LAYER}.attention.qkv.weight"), f"{_LAYER}.attention.qkv"
    if qkv is None:
        return  # which is told elsewhere
    yield "quant_algo", quantization["quant_algo"], _ALGORITHMS.get(str(qkv.dtype))
    scales = own.get(f"{name}.weights_scaling_factor")
    if str(qkv.dtype) == "torch.int8" and scales is not None:
        yield "group_size", quantization.get("group_size"), qkv.shape[1] // scales.shape[1]
        yield "pre_quant_scale", quantization.get("pre_quant_scale"), f"{name}.prequant_scaling_factor" in own
    cache = "FP8" if f"{_LAYER}.attention.kv_cache_scaling_factor" in own else None
    yield "kv_cache_quant_algo", quantization["kv_cache_quant_algo"], cache
    yield "attn_bias", config["attn_bias"], f"{name}.bias" in own
    yield "mlp_bias", config["mlp_bias"], f"{_LAYER}.mlp.fc.bias" in own
    yield "qk_layernorm", config.get("qk_layernorm", False), f"{_LAYER}.attention.q_layernorm.weight" in own
    embedding = own.get("transformer.vocab_embedding.weight")
    if embedding is not None:
        yield "vocab_size and hidden_size", [config["vocab_size"], config["hidden_size"]], list(embedding.shape)
