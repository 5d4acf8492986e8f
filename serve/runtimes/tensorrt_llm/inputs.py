"""The tensors of a step, by the names that TensorRT-LLM's engines have for them.

Meanings are those of upstream's own in-flight batching (``runtimeBuffers.cpp``, see docs/engine-steps.md): past lengths are
the whole cache after the step for context rows, and the cache before it for generation rows; context lengths are the tokens
that a context row brings, and the prompt of a generation row.
"""

from __future__ import annotations

import numpy as np
import torch

from .geometry import EngineGeometry
from .pool import KvPool
from .ranks import RankPart
from .session import Device
from .steps import CONTEXT, Step

__all__ = ["StepTensors"]

_KNOBS = (1, *(-1,) * 15)
"""Long contexts are read by several blocks at once, as upstream's runtimes have it by default; nothing else is asked for."""


class StepTensors:
    """Makes the inputs and outputs of one rank's steps; what never changes is made once.

    Args:
        geometry: of the engine.
        part: of the rank.
        pool: its pages.
        device: where the tensors go.
        workspace: ``all_reduce_workspace`` of this rank, where several share a layer.
    """

    def __init__(
        self,
        geometry: EngineGeometry,
        part: RankPart,
        *,
        pool: KvPool,
        device: Device,
        workspace: torch.Tensor | None = None,
    ) -> None:
        self._geometry = geometry
        self._part = part
        self._pool = pool
        self._device = device
        limits = geometry.build_config
        self._indirection = device.put(np.zeros((limits.max_batch_size, 1, limits.max_seq_len), dtype=np.int32))
        self._constant = {
            "host_kv_cache_pool_pointers": pool.pointers,
            "host_kv_cache_pool_mapping": pool.mapping,
            "host_max_attention_window_sizes": torch.full((pool.layers,), limits.max_seq_len, dtype=torch.int32),
            "host_sink_token_length": torch.zeros(1, dtype=torch.int32),
            "host_runtime_perf_knobs": torch.tensor(_KNOBS, dtype=torch.int64),
            "host_context_progress": torch.zeros(1, dtype=torch.int64),
        }
        if workspace is not None:
            self._constant["all_reduce_workspace"] = workspace

    def inputs(self, step: Step, page_table: torch.Tensor) -> dict[str, torch.Tensor]:
        """Every input that a rank of this engine can have, rows in the engine's order.

        Args:
            step: what runs.
            page_table: int32 [B, M] on the device, in the batch's order, as the page check saw it.
        """
        order = step.order
        tokens = np.concatenate([np.arange(step.query_start[row], step.query_start[row + 1]) for row in order])
        counts, kinds, context = step.counts[order], step.kinds[order], step.context_len[order]
        lengths = np.where(kinds == CONTEXT, counts, step.prompt_len[order]).astype(np.int32)
        past = np.where(kinds == CONTEXT, context, context - 1).astype(np.int32)
        put = self._device.put
        with self._device.active():
            offsets = self._pool.offsets(page_table[put(order)])
        return {
            **self._constant,
            **({"input_ids": put(step.token_ids[tokens])} if self._part.is_first else {}),
            **({} if self._part.is_first else {"hidden_states_input": self._hidden_states(len(tokens))}),
            **({"last_token_ids": put(np.cumsum(counts, dtype=np.int32))} if self._part.is_last else {}),
            "position_ids": put(step.positions[tokens]),
            "kv_cache_block_offsets": offsets,
            "host_kv_cache_block_offsets": torch.from_numpy(self._device.get(offsets)),
            "sequence_length": put(context),
            "host_past_key_value_lengths": torch.from_numpy(past),
            "context_lengths": put(lengths),
            "host_context_lengths": torch.from_numpy(lengths),
            "host_request_types": torch.from_numpy(kinds),
            "cache_indirection": self._indirection[: len(order)],
        }

    def outputs(self, step: Step) -> dict[str, torch.Tensor]:
        """Room for what the rank gives."""
        if not self._part.is_last:
            return {"hidden_states_output": self._hidden_states(len(step.token_ids))}
        dtype = getattr(torch, self._geometry.pretrained_config.logits_dtype)
        return {"logits": self._empty(len(step.order), self._geometry.padded_vocab, dtype=dtype)}

    def _hidden_states(self, tokens: int) -> torch.Tensor:
        """The engine receives and sends hidden states itself; its network has these tensors nevertheless."""
        model = self._geometry.pretrained_config
        return self._empty(tokens, model.hidden_size, dtype=getattr(torch, model.dtype))

    def _empty(self, *shape: int, dtype: torch.dtype) -> torch.Tensor:
        with self._device.active():
            return torch.empty(*shape, dtype=dtype, device=self._device.torch_device)
