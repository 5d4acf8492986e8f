"""A whole step of a model in native code, on torch's tensors: from token ids to logits.

The model is a stack of layers as Llama, Qwen2, Qwen3 and Mistral have them; ``native/step.h`` says exactly which. Weights are
those that the linears hold already: nothing is copied.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundhouse.errors import ServeError

from .native_attention import NativeAttention, fault_error
from .native_interface import Fault, Model, ModelLayer, Projection, StepTokens
from .native_linear import NativeLinear

if TYPE_CHECKING:
    import torch

__all__ = ["NativeStep", "StepLayer", "StepProjection", "StepSeconds", "StepWeights"]


class StepSeconds(ctypes.Structure):
    """What the parts of a step took: ``RH_PARTS`` of ``native/step.h``."""

    _fields_ = (("attention", ctypes.c_double), ("linears", ctypes.c_double), ("lm_head", ctypes.c_double))


@dataclass(frozen=True)
class StepProjection:
    """A linear of the model."""

    linear: NativeLinear
    input_scale: torch.Tensor | None = None
    """bfloat16 [K], multiplies the input. Linears that share their input should share it as one tensor, too."""
    bias: torch.Tensor | None = None
    """bfloat16 [N]"""


@dataclass(frozen=True)
class StepLayer:
    """One layer; norms are bfloat16 [hidden], those of heads [head_dim]."""

    attention_norm: torch.Tensor
    mlp_norm: torch.Tensor
    query: StepProjection
    key: StepProjection
    value: StepProjection
    output: StepProjection
    gate: StepProjection
    up: StepProjection
    down: StepProjection
    query_norm: torch.Tensor | None = None
    key_norm: torch.Tensor | None = None


@dataclass(frozen=True)
class StepWeights:
    """A model."""

    layers: Sequence[StepLayer]
    embedding: torch.Tensor
    """bfloat16 [V, hidden]"""
    norm: torch.Tensor
    """bfloat16 [hidden]"""
    head: StepProjection
    cosines: torch.Tensor
    """float32 [positions, head_dim / 2]: what element i of a head is rotated by, together with element i + head_dim / 2."""
    sines: torch.Tensor
    heads: int
    epsilon: float
    """Of every norm."""
    scaling: float
    """Factor on the scores."""
    int8_inputs: bool
    """Round the inputs of INT4 linears to int8, by row and group."""


class NativeStep:
    """A model on a pool.

    Args:
        kernels: from :func:`roundhouse.plugins.native_interface.load_kernels`.
        attention: the pool; its layers are numbered from 0 on.
        weights: kept alive here.

    Raises:
        ServeError: a tensor is of another dtype or shape than it must be.
    """

    def __init__(self, kernels: ctypes.CDLL, attention: NativeAttention, weights: StepWeights) -> None:
        self._step = kernels.rh_step
        self._attention = attention
        self._weights = weights
        _require_tensors(weights, attention.geometry.head_dim)
        layers = (ModelLayer * len(weights.layers))(
            *(_layer(layer, attention.layers[number]) for number, layer in enumerate(weights.layers))
        )
        self._layers = layers  # their memory must outlive the model
        self._vocab = weights.embedding.shape[0]
        self._model = Model(
            layers=ctypes.cast(layers, ctypes.c_void_p),
            embedding=weights.embedding.data_ptr(),
            norm=weights.norm.data_ptr(),
            head=_projection(weights.head),
            cosines=weights.cosines.data_ptr(),
            sines=weights.sines.data_ptr(),
            layer_count=len(layers),
            hidden=weights.embedding.shape[1],
            heads=weights.heads,
            intermediate=weights.layers[0].gate.linear.structure.outputs,
            vocab=self._vocab,
            positions=weights.cosines.shape[0],
            int8_inputs=weights.int8_inputs,
            epsilon=weights.epsilon,
            scaling=weights.scaling,
        )

    def run(
        self,
        token_ids: torch.Tensor,
        page_table: torch.Tensor,
        query_start: torch.Tensor,
        context_len: torch.Tensor,
        sample_rows: torch.Tensor,
        *,
        seconds: StepSeconds | None = None,
    ) -> torch.Tensor:
        """Run a step: store keys and values of its tokens in their pages, and attend to what pages hold.

        Args:
            token_ids: int64 [T], packed.
            page_table: int32 [B, M], as :meth:`NativeAttention.step`, and so the next two.
            query_start: int32 [B + 1].
            context_len: int32 [B].
            sample_rows: int64 [R], of the packed tokens.
            seconds: what the parts of the step took is added to it.

        Returns:
            float32 [R, V]: logits. A row is bitwise the same whatever the other rows are, and whether its tokens run in this
            step or in several.

        Raises:
            ServeError: a tensor has another dtype or shape, a token is none of the vocabulary, or as
                :meth:`NativeAttention.run`; nothing was stored or read. Or there was no memory left: the step's keys and values
                are in the pages of some layers.
        """
        import torch

        tables = self._attention.step(page_table, query_start, context_len)
        for each in (token_ids, sample_rows):
            if each.dtype != torch.int64 or each.dim() != 1 or not each.is_contiguous():
                raise ServeError("the native step needs token ids and sample rows as contiguous int64 vectors")
        logits = torch.empty(len(sample_rows), self._vocab)
        tokens = StepTokens(
            token_ids.data_ptr(),
            sample_rows.data_ptr(),
            logits.data_ptr(),
            None if seconds is None else ctypes.addressof(seconds),
            len(token_ids),
            len(sample_rows),
        )
        fault = Fault()
        code = self._step(*map(ctypes.byref, (self._model, self._attention.pool, tables.batch, tokens, fault)))
        if code:
            raise fault_error(code, fault, self._attention.pool.page_count)
        return logits


def _layer(layer: StepLayer, place: ctypes.Structure) -> ModelLayer:
    return ModelLayer(
        layer.attention_norm.data_ptr(),
        layer.mlp_norm.data_ptr(),
        _address(layer.query_norm),
        _address(layer.key_norm),
        *map(_projection, _projections(layer)),
        place,
    )


def _projections(layer: StepLayer) -> tuple[StepProjection, ...]:
    return (layer.query, layer.key, layer.value, layer.output, layer.gate, layer.up, layer.down)


def _projection(projection: StepProjection) -> Projection:
    return Projection(projection.linear.structure, _address(projection.input_scale), _address(projection.bias))


def _address(tensor: torch.Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _require_tensors(weights: StepWeights, head_dim: int) -> None:
    """See that every tensor is what its address is taken for: the library knows sizes only."""
    import torch

    vocab, hidden = weights.embedding.shape
    expected: list[tuple[torch.Tensor | None, tuple[int, ...], torch.dtype]] = [
        (weights.embedding, (vocab, hidden), torch.bfloat16),
        (weights.norm, (hidden,), torch.bfloat16),
        *((table, (weights.cosines.shape[0], head_dim // 2), torch.float32) for table in (weights.cosines, weights.sines)),
    ]
    _require_sizes(weights, hidden, vocab, head_dim)
    for layer in weights.layers:
        expected += [(norm, (hidden,), torch.bfloat16) for norm in (layer.attention_norm, layer.mlp_norm)]
        expected += [(norm, (head_dim,), torch.bfloat16) for norm in (layer.query_norm, layer.key_norm)]
    for projection in _all_projections(weights):
        linear = projection.linear.structure
        expected += [
            (projection.input_scale, (linear.inputs,), torch.bfloat16),
            (projection.bias, (linear.outputs,), torch.bfloat16),
        ]
    for tensor, shape, dtype in expected:
        if tensor is None:
            continue
        if tensor.shape != shape or tensor.dtype != dtype or not tensor.is_contiguous() or tensor.device.type != "cpu":
            raise ServeError(f"the native step needs {dtype} {shape} where the model has {tensor.dtype} {tuple(tensor.shape)}")


def _require_sizes(weights: StepWeights, hidden: int, vocab: int, head_dim: int) -> None:
    """See that what one linear gives is what the next one takes."""
    attended, inner = weights.heads * head_dim, weights.layers[0].gate.linear.structure.outputs
    pairs = [(weights.head, (vocab, hidden))]
    for layer in weights.layers:
        stored = layer.key.linear.structure.outputs
        pairs += [(layer.query, (attended, hidden)), (layer.key, (stored, hidden)), (layer.value, (stored, hidden))]
        pairs += [(layer.output, (hidden, attended)), (layer.down, (hidden, inner))]
        pairs += [(each, (inner, hidden)) for each in (layer.gate, layer.up)]
    for projection, wanted in pairs:
        found = projection.linear.structure.outputs, projection.linear.structure.inputs
        if found != wanted:
            raise ServeError(f"the native step needs a linear of {wanted} where the model has one of {found}")


def _all_projections(weights: StepWeights) -> Iterator[StepProjection]:
    yield weights.head
    for layer in weights.layers:
        yield from _projections(layer)
