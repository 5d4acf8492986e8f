"""In-memory twins of what a TensorRT-LLM engine runs on: a device, a loaded engine, and the ranks' messages.

None of this is TensorRT. The engine's twin reads what upstream's attention reads (addresses, offsets, lengths, request types),
checks that every tensor is as ``build/trtllm/upstream.json`` records it, and computes with the torch model.
"""

from __future__ import annotations

import contextlib
import ctypes
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from roundhouse.build.trtllm.upstream import EngineTensor, upstream
from roundhouse.plugins.native_guard import FirstBad
from roundhouse.plugins.torch_guard import torch_page_guard
from roundhouse.serve.runtimes.tensorrt_llm.geometry import EngineGeometry
from roundhouse.serve.runtimes.tensorrt_llm.link import Command
from roundhouse.serve.runtimes.tensorrt_llm.rank import RankEngine, follow
from roundhouse.serve.runtimes.tensorrt_llm.ranks import RankPart, rank_parts
from roundhouse.serve.runtimes.tensorrt_llm.runtime import TensorRtRuntime, begin
from roundhouse.serve.runtimes.torch_model import load_model

T = TypeVar("T")
_PATIENCE_S = 60


class DeviceTwin:
    """A device whose memory is the host's. ``torch_device`` meta keeps sizes only, and tells what lies where."""

    stream = 4711

    def __init__(self, kind: str = "cpu") -> None:
        self.torch_device = torch.device(kind)

    def active(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def put(self, array: npt.NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(np.array(array)).to(self.torch_device)

    def get(self, tensor: torch.Tensor) -> npt.NDArray[Any]:
        if tensor.device.type == "meta":
            tensor = torch.zeros_like(tensor, device="cpu")
        content: npt.NDArray[Any] = tensor.clone().numpy()
        return content

    def wait(self) -> None:
        return None


class Meeting:
    """Where threads that stand for ranks meet. One that fails lets all others fail."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._barrier = threading.Barrier(size)
        self._values: list[Any] = [None] * size

    def exchange(self, rank: int, value: T) -> list[T]:
        self._values[rank] = value
        self._barrier.wait(_PATIENCE_S)
        values = list(self._values)
        self._barrier.wait(_PATIENCE_S)
        return values

    def abort(self) -> None:
        self._barrier.abort()


Mail = defaultdict[tuple[int, int], queue.Queue[object]]
"""What ranks send each other, by sender and receiver."""


class LinkTwin:
    """A link between threads of one process."""

    def __init__(self, meeting: Meeting, mail: Mail, rank: int) -> None:
        self.rank, self.size = rank, meeting.size
        self.heard: list[Command] = []
        self._meeting = meeting
        self._mail = mail

    def command(self, command: Command | None = None) -> Command:
        heard: Command = self.exchange(command)[0]  # type: ignore[assignment]  # rank 0 says one
        self.heard.append(heard)
        return heard

    def exchange(self, value: T) -> list[T]:
        return self._meeting.exchange(self.rank, value)

    def send(self, value: object, rank: int) -> None:
        self._mail[self.rank, rank].put(value)

    def receive(self, rank: int) -> object:
        return self._mail[rank, self.rank].get(timeout=_PATIENCE_S)


@dataclass
class SessionTwin:
    """A loaded engine of one rank, in float32.

    The model is whole on every rank; what is shared is attention. A rank keeps keys and values of its own layers and heads in
    its own pool, attends with them, and gets the other ranks' shares from a meeting: as tensor and pipeline parallelism do.
    """

    geometry: EngineGeometry
    part: RankPart
    model: Any
    pages: int
    meeting: Meeting
    extra_inputs: frozenset[str] = frozenset()
    steps: list[dict[str, npt.NDArray[Any]]] = field(default_factory=list)
    """Host tensors of every step so far."""
    on_run: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        record = upstream().engine_inputs
        self.inputs = self._named(record.inputs, middle=not self.part.is_first) | self.extra_inputs
        self.outputs = self._named(record.outputs, middle=not self.part.is_last)

    def run(self, inputs: Mapping[str, torch.Tensor], outputs: Mapping[str, torch.Tensor], stream: int) -> None:
        self.on_run()
        assert stream == DeviceTwin.stream
        assert inputs.keys() == self.inputs
        assert outputs.keys() == self.outputs
        check_as_recorded(self.geometry, self.part, inputs, outputs)
        self.steps.append({name: tensor.numpy().copy() for name, tensor in inputs.items() if name.startswith("host_")})
        tables = _Tables.read(self.geometry, self.part, inputs, self.pages)
        (tokens, *_) = self.meeting.exchange(self.part.rank, inputs.get("input_ids"))

        def attend(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float) -> torch.Tensor:
            mine = None
            if layer in self.part.layers:
                local = layer - self.part.layers.start
                mine = tables.attend(local, *self._heads(query, key, value), scaling)
            shares = self.meeting.exchange(self.part.rank, mine)
            return torch.cat([share for share in shares if share is not None], dim=1)

        with torch.inference_mode():
            output = self.model(
                input_ids=tokens[None].long(),
                position_ids=inputs["position_ids"][None].long(),
                use_cache=False,
                logits_to_keep=tables.last_tokens,
                paged=attend,
            )
        if self.part.is_last:
            outputs["logits"].fill_(float("nan"))  # what lies beyond the vocabulary must not be read
            outputs["logits"][:, : output.logits.shape[-1]] = output.logits[0]

    def _heads(self, *tensors: torch.Tensor) -> Iterator[torch.Tensor]:
        """This rank's share of query, key and value heads, [heads, T, dim] each."""
        tp = self.geometry.pretrained_config.mapping.tp_size
        for tensor in tensors:
            share = max(1, tensor.shape[0] // tp)
            first = self.part.tp_rank * tensor.shape[0] // tp
            yield tensor[first : first + share]

    def _named(self, tensors: Mapping[str, EngineTensor], *, middle: bool) -> frozenset[str]:
        """Those tensors that this rank's engine has, as the record says; ``middle``: whether it has those between stages."""
        part, shared = self.part, self.geometry.pretrained_config.mapping.tp_size > 1
        on = {
            "": True,
            "first pipeline rank": part.is_first,
            "last pipeline rank": part.is_last,
            "other pipeline ranks": middle,
        }
        return frozenset(name for name, tensor in tensors.items() if on[tensor.on] and (shared or not tensor.when))


@dataclass
class _Tables:
    """What upstream's attention reads of a step: see ``gptAttentionPlugin.cpp`` in docs/engine-steps.md."""

    blocks: torch.Tensor
    """float32 [blocks, heads, tokens, dim]: the pool, found by its address."""
    mapping: torch.Tensor
    offsets: torch.Tensor
    """int32 [B, 2, M]"""
    queries: list[int]
    lengths: list[int]
    last_tokens: torch.Tensor
    page_tokens: int

    @classmethod
    def read(cls, geometry: EngineGeometry, part: RankPart, inputs: Mapping[str, torch.Tensor], pages: int) -> _Tables:
        kinds = inputs["host_request_types"].tolist()
        assert kinds == sorted(kinds), "context requests come first"
        contexts, lengths = inputs["context_lengths"].tolist(), inputs["sequence_length"].tolist()
        assert contexts == inputs["host_context_lengths"].tolist()
        assert torch.equal(inputs["kv_cache_block_offsets"], inputs["host_kv_cache_block_offsets"])
        queries = [context if kind == 0 else 1 for kind, context in zip(kinds, contexts, strict=True)]
        for kind, context, length, past in zip(kinds, contexts, lengths, inputs["host_past_key_value_lengths"], strict=True):
            assert past == (length if kind == 0 else length - 1)
            assert kind == 0 or length > context, "generation follows the whole prompt"
            assert geometry.takes_chunks or kind == 1 or length == context, "without paged context attention prompts are whole"
        ends = np.cumsum(queries)
        positions = [length - count + token for length, count in zip(lengths, queries, strict=True) for token in range(count)]
        assert inputs["position_ids"].tolist() == positions
        if part.is_last:
            assert inputs["last_token_ids"].tolist() == ends.tolist()
        assert not inputs["cache_indirection"].any()
        blocks = pages * len(part.layers) * 2
        pool = _at(int(inputs["host_kv_cache_pool_pointers"][0, 0]), blocks * geometry.block_bytes)
        offsets = inputs["kv_cache_block_offsets"][0]
        assert bool(((offsets >= 0) & (offsets < blocks)).all())
        shape = blocks, geometry.kv_heads, geometry.page_tokens, geometry.head_dim
        return cls(
            blocks=torch.frombuffer(pool, dtype=torch.float32).view(shape),
            mapping=inputs["host_kv_cache_pool_mapping"],
            offsets=offsets,
            queries=queries,
            lengths=lengths,
            last_tokens=torch.from_numpy(ends - 1),
            page_tokens=geometry.page_tokens,
        )

    def attend(self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float) -> torch.Tensor:
        """Store the step's keys and values, and attend to what pages hold: → [T, heads, dim]."""
        pool, place = self.mapping[layer].tolist()
        assert pool == 0
        out, start = [], 0
        for row, (count, length) in enumerate(zip(self.queries, self.lengths, strict=True)):
            end = start + count
            cached = []
            for kind, fresh in enumerate((key, value)):
                # The layer's own address is the pool's and its blocks of keys and values before it.
                ids = self.offsets[row, kind].long() + place * 2
                positions = torch.arange(length - count, length)
                cells = ids[positions // self.page_tokens], positions % self.page_tokens
                self.blocks[cells[0], :, cells[1]] = fresh[:, start:end].transpose(0, 1)
                pages = self.blocks[ids[: -(-length // self.page_tokens)]]
                cached.append(pages.transpose(0, 1).flatten(1, 2)[:, :length])
            mask = torch.ones(count, length, dtype=torch.bool).tril(length - count)
            attended = F.scaled_dot_product_attention(
                query[None, :, start:end], cached[0][None], cached[1][None], attn_mask=mask, scale=scaling, enable_gqa=True
            )
            out.append(attended[0].transpose(0, 1))
            start = end
        return torch.cat(out)


class WorkspaceTwin:
    """Where nothing is added up: the sessions' twins meet in person."""

    tensor = torch.zeros(23, dtype=torch.int64)


class World:
    """Every rank of an engine: rank 0 here, the others in threads of their own.

    Args:
        geometry: of the engine.
        model: what all sessions compute with.
        pages: of each rank's pool.
        guards: by rank, what compares tags; torch's operations where none is named.
        extra_inputs: of every session.
    """

    def __init__(
        self,
        geometry: EngineGeometry,
        model: Any,
        *,
        pages: int,
        guards: Mapping[int, FirstBad] | None = None,
        extra_inputs: frozenset[str] = frozenset(),
    ) -> None:
        self.geometry = geometry
        self.errors: list[BaseException] = []
        parts = rank_parts(geometry)
        self._sums, self._talk = Meeting(len(parts)), Meeting(len(parts))
        self._guards = guards or {}
        self.sessions = [SessionTwin(geometry, part, model, pages, self._sums, extra_inputs) for part in parts]
        mail: Mail = defaultdict(queue.Queue)
        self.links = [LinkTwin(self._talk, mail, part.rank) for part in parts]
        self.engines: dict[int, RankEngine] = {}
        self._threads = [threading.Thread(target=self._follow, args=(link,), daemon=True) for link in self.links[1:]]
        for thread in self._threads:
            thread.start()
        begin(self.links[0], pages)
        self.runtime = TensorRtRuntime(geometry, self._load(0, pages), self.links[0])

    def close(self) -> None:
        """Let the other ranks end; whatever went wrong there is raised here."""
        with contextlib.suppress(threading.BrokenBarrierError):  # a rank that failed has ended them all
            self.runtime.close()
        for thread in self._threads:
            thread.join(_PATIENCE_S)
        if self.errors:
            raise self.errors[0]

    def _load(self, rank: int, pages: int) -> RankEngine:
        self.engines[rank] = RankEngine(
            self.geometry,
            rank_parts(self.geometry)[rank],
            session=self.sessions[rank],
            device=DeviceTwin(),
            pages=pages,
            guard=self._guards.get(rank, torch_page_guard),
            workspace=WorkspaceTwin() if self.geometry.pretrained_config.mapping.tp_size > 1 else None,
        )
        return self.engines[rank]

    def _follow(self, link: LinkTwin) -> None:
        try:
            follow(link, lambda pages: self._load(link.rank, pages))
        except BaseException as error:
            self.errors.append(error)
            self._sums.abort()
            self._talk.abort()


def check_as_recorded(
    geometry: EngineGeometry, part: RankPart, inputs: Mapping[str, torch.Tensor], outputs: Mapping[str, torch.Tensor]
) -> None:
    """Every tensor has the type and the dimensions that are recorded of it, and sizes agree among tensors."""
    model, limits, record = geometry.pretrained_config, geometry.build_config, upstream().engine_inputs
    sizes: dict[str, int] = {
        "pools": 1,
        "beam": 1,
        "hidden_size": model.hidden_size,
        "attention layers": len(part.layers),
        "blocks": geometry.columns,
        "max_seq_len": limits.max_seq_len,
        "vocab_size_padded": geometry.padded_vocab,
    }
    dtypes = {"model": model.dtype, "logits": model.logits_dtype}
    for recorded, given in ((record.inputs, inputs), (record.outputs, outputs)):
        for name, tensor in given.items():
            if name not in recorded:
                continue
            said = recorded[name]
            assert str(tensor.dtype) == f"torch.{dtypes.get(said.dtype, said.dtype)}", name
            assert tensor.is_contiguous(), name
            assert len(said.dims) == tensor.dim(), name
            for dimension, size in zip(said.dims, tensor.shape, strict=True):
                key = "batch" if dimension == "batch*beam" else dimension
                expected = key if isinstance(key, int) else sizes.setdefault(key, size)
                assert size == expected, f"{name}: {dimension} is {size}, not {expected}"
    assert 1 <= sizes["batch"] <= limits.max_batch_size
    assert sizes["batch"] <= sizes["tokens"] <= limits.max_num_tokens


def float32_model(checkpoint: Path) -> Any:
    """The torch model of a checkpoint, as the torch runtime's reference has it."""
    return load_model(checkpoint, dtype=torch.float32, keep_packed=False)


def _at(address: int, size: int) -> Any:
    return (ctypes.c_uint8 * size).from_address(address)
