"""Is a TensorRT-LLM checkpoint what it was made from? Every rank's weights are read back and compared, bit for bit.

What is compared is what the numbers mean: a rank's linear is dequantized and put beside the dequantized rows and columns of the
verified checkpoint that belong to it. Which heads are a rank's is found here from upstream's rule (whole heads, one after the
other), as are layouts and packing. Not found anew are the names of norms, which layers a stage has, how a size is shared out
and to what the head is padded: those are the writer's (``checkpoint.py``, ``ranks.py``) and have tests of their own. What
``config.json`` says is compared with the tensors (``checkpoint_facts.py``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from roundhouse.errors import VerifyError

from ..events import OnStep
from ..models.shape import ModelShape
from ..planner.plan import Plan
from ..weights import QuantizedLinear, Tensors, dequantize, quantized_linear
from .checkpoint import EMBEDDING, HEAD, NORMS, padded_vocab, rank_file
from .checkpoint_facts import config_problems, mapping_problems
from .ranks import Rank, ranks

if TYPE_CHECKING:
    import torch

__all__ = ["check_trtllm_checkpoint"]

_SHOWN = 8


def check_trtllm_checkpoint(checkpoint: Path, folder: Path, plan: Plan, on_step: OnStep = lambda *_: None) -> int:
    """Compare every tensor of every rank with the verified checkpoint, and the config with the tensors.

    Returns:
        How many tensors were compared.

    Raises:
        VerifyError: naming each rank's tensor that is missing, is not known, or differs, and what the config says otherwise.
    """
    unified = Tensors(checkpoint)
    everyone = ranks(plan.shape, tensor=plan.recipe.tensor_parallel, pipeline=plan.recipe.pipeline_parallel)
    problems: list[str] = []
    compared = 0
    config = json.loads((folder / "config.json").read_text())
    layers: list[int] = []
    for rank in everyone:
        own = _read(folder / rank_file(rank.index))
        problems += [f"rank {rank.index}: {problem}" for problem in config_problems(config, own)]
        layers.append(len({name.split(".")[2] for name in own if name.startswith("transformer.layers.")}))
        left = set(own)
        for problem, names in _compare(unified, own, plan.shape, rank):
            left -= names
            compared += len(names)
            problems += [f"rank {rank.index}: {problem}"] if problem else []
        problems += [f"rank {rank.index}: {name} belongs to nothing" for name in sorted(left)]
        on_step(rank.index + 1, len(everyone))
    problems += mapping_problems(config, layers)
    if problems:
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        lines = "\n".join(f"  - {line}" for line in problems[:_SHOWN] + more)
        raise VerifyError(f"the TensorRT-LLM checkpoint is not what it was made from:\n{lines}")
    return compared


def _compare(
    unified: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor], shape: ModelShape, rank: Rank
) -> Iterator[tuple[str | None, set[str]]]:
    """For each thing that a rank holds, what is wrong with it, and the tensors that it is."""
    if rank.embeds:
        yield _same(own, "transformer.vocab_embedding.weight", unified[EMBEDDING])
    for local, index in enumerate(rank.layers):
        layer, name = f"model.layers.{index}", f"transformer.layers.{local}"
        yield _linear(unified, own, f"{name}.attention.qkv", _heads(layer, shape, rank), None)
        yield _linear(unified, own, f"{name}.attention.dense", [(f"{layer}.self_attn.o_proj", None)], rank)
        for theirs, ours in (("fc", "gate_proj"), ("gate", "up_proj")):
            rows = [*rank.share(shape.intermediate)]
            yield _linear(unified, own, f"{name}.mlp.{theirs}", [(f"{layer}.mlp.{ours}", rows)], None)
        yield _linear(unified, own, f"{name}.mlp.proj", [(f"{layer}.mlp.down_proj", None)], rank)
        for norm, theirs in NORMS.items():
            if f"{layer}.{norm}.weight" in unified:
                yield _same(own, f"{name}.{theirs}.weight", unified[f"{layer}.{norm}.weight"])
        scales = [unified[key].float() for part in "kv" if (key := f"{layer}.self_attn.{part}_proj.{part}_scale") in unified]
        if scales:
            yield _same(own, f"{name}.attention.kv_cache_scaling_factor", max(scales).reshape(1))
    if rank.answers:
        yield _same(own, "transformer.ln_f.weight", unified["model.norm.weight"])
        yield _same(own, "lm_head.weight", _head(unified, shape, rank))


def _heads(layer: str, shape: ModelShape, rank: Rank) -> list[tuple[str, list[int] | None]]:
    """The rows of queries, keys and values that a rank's heads are, each head with its key/value head."""
    query_heads = shape.heads // rank.tensor
    first = rank.tensor_rank * query_heads
    shared_by = shape.heads // shape.kv_heads
    kv_heads = dict.fromkeys((first + head) // shared_by for head in range(query_heads))

    def rows(heads: Iterator[int] | range | dict[int, None]) -> list[int]:
        return [head * shape.head_dim + row for head in heads for row in range(shape.head_dim)]

    queries = rows(range(first, first + query_heads))
    parts = (("q", queries), ("k", rows(kv_heads)), ("v", rows(kv_heads)))
    return [(f"{layer}.self_attn.{part}_proj", found) for part, found in parts]


def _linear(
    unified: Mapping[str, torch.Tensor],
    own: Mapping[str, torch.Tensor],
    name: str,
    parts: list[tuple[str, list[int] | None]],
    columns_of: Rank | None,
) -> tuple[str | None, set[str]]:
    """A rank's linear against the rows of its parts, or against the columns of the only one that are this rank's."""
    import torch

    names = {key for key in own if key.rpartition(".")[0] == name}
    if f"{name}.weight" not in own:
        return f"{name} is missing", names
    matrices, biases = [], []
    for part, rows in parts:
        scaled = f"{part}.weight_scale" in unified
        matrix = dequantize(quantized_linear(unified, part)) if scaled else unified[f"{part}.weight"]
        matrices.append(matrix if rows is None else matrix[rows])
        if f"{part}.bias" in unified:
            biases.append(unified[f"{part}.bias"] if rows is None else unified[f"{part}.bias"][rows])
    expected = torch.cat(matrices)
    if columns_of is not None:
        columns = columns_of.share(expected.shape[1])
        expected = expected[:, columns.start : columns.stop]
    if not _equal(_meaning(own, name), expected):
        return f"{name}: its weights are not those of {', '.join(part for part, _ in parts)}", names
    if bool(biases) != (f"{name}.bias" in own) or (biases and not _equal(own[f"{name}.bias"], torch.cat(biases))):
        return f"{name}.bias is not that of {', '.join(part for part, _ in parts)}", names
    scale = f"{parts[0][0]}.input_scale"
    activation = own.get(f"{name}.activation_scaling_factor")
    if scale in unified and (activation is None or not _equal(activation, unified[scale].float().reshape(1))):
        return f"{name}.activation_scaling_factor is not {scale}", names
    return None, names


def _meaning(own: Mapping[str, torch.Tensor], name: str) -> torch.Tensor:
    """The matrix that a linear of a TensorRT-LLM checkpoint multiplies its input by."""
    import torch

    weight, scale = own[f"{name}.weight"], own.get(f"{name}.weights_scaling_factor")
    if scale is None:
        return weight
    if weight.dtype == torch.int8:
        packed = weight.view(torch.uint8)
        return dequantize(QuantizedLinear("int4", packed, scale, own.get(f"{name}.prequant_scaling_factor")))
    return dequantize(QuantizedLinear("fp8", weight, scale, None))


def _head(unified: Mapping[str, torch.Tensor], shape: ModelShape, rank: Rank) -> torch.Tensor:
    """A rank's rows of the head; those behind the last word are 0."""
    whole = unified[HEAD] if HEAD in unified else unified[EMBEDDING]
    padded = whole.new_zeros(padded_vocab(shape.vocab, rank.tensor), shape.hidden)
    padded[: shape.vocab] = whole
    return padded.chunk(rank.tensor)[rank.tensor_rank]


def _same(own: Mapping[str, torch.Tensor], name: str, expected: torch.Tensor) -> tuple[str | None, set[str]]:
    if name not in own:
        return f"{name} is missing", set()
    return (None if _equal(own[name], expected) else f"{name} differs"), {name}


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    import torch

    return one.dtype == other.dtype and torch.equal(one, other)


def _read(path: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    tensors: dict[str, torch.Tensor] = load_file(path)
    return tensors
