"""Safetensors checkpoints read by their headers alone: names, dtypes, shapes and bytes as stored."""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from roundhouse.errors import ModelError

__all__ = ["OTHER_FORM", "Checkpoint", "StoredTensor", "has_weights", "read_checkpoint"]

OTHER_FORM = "consolidated*.safetensors"
"""The same weights in their maker's own form, which some hub folders carry beside the Hugging Face one: never read."""

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_MAX_HEADER_BYTES = 100_000_000
_TORCH_NAMES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
_DTYPE_BYTES = {
    **dict.fromkeys(("F64", "I64", "U64"), 8),
    **dict.fromkeys(("F32", "I32", "U32"), 4),
    **dict.fromkeys(("BF16", "F16", "I16", "U16"), 2),
    **dict.fromkeys(("U8", "I8", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 1),
}
_MISSING_HINT = "Download the folder again; nothing was loaded."


class StoredTensor(NamedTuple):
    """One tensor of a checkpoint: safetensors dtype name (``BF16``, ``U8``, ``F8_E4M3``…), shape, bytes, file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    file: str


@dataclass(frozen=True)
class Checkpoint:
    """Every tensor of a checkpoint folder, by name, and the files they lie in."""

    folder: Path
    files: tuple[str, ...]
    tensors: dict[str, StoredTensor]

    @property
    def tensor_bytes(self) -> int:
        """Bytes of all tensors as stored, without file headers."""
        return sum(tensor.bytes for tensor in self.tensors.values())

    @property
    def main_dtype(self) -> str | None:
        """The torch name of the floating dtype that holds most bytes, or None."""
        by_dtype: Counter[str] = Counter()
        for tensor in self.tensors.values():
            if tensor.dtype in _TORCH_NAMES:
                by_dtype[_TORCH_NAMES[tensor.dtype]] += tensor.bytes
        return by_dtype.most_common(1)[0][0] if by_dtype else None


def has_weights(folder: Path) -> bool:
    """Whether a folder holds weights in any of their forms, or says that it should."""
    return any(folder.glob("*.safetensors*")) or any(folder.glob("*.bin")) or any(folder.glob("*.pt*"))


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read the headers of all safetensors files of a folder; no weights are read.

    Raises:
        ModelError: a shard named by the index is missing, a stray one lies beside the index, a file
            is truncated, or a tensor stands in no file or in two. All names are listed.
    """
    index = _index(folder)
    files = _files(folder, index)
    tensors: dict[str, StoredTensor] = {}
    for file in files:
        for tensor in _read_header(folder / file):
            if tensor.name in tensors:
                raise ModelError(f"tensor {tensor.name} is in both {tensors[tensor.name].file} and {file}", hint=_MISSING_HINT)
            tensors[tensor.name] = tensor
    for name, file in (index or {}).items():
        if name not in tensors:
            raise ModelError(f"{_INDEX} places {name} in {file}, which does not hold it", hint=_MISSING_HINT)
    return Checkpoint(folder=folder, files=files, tensors=tensors)


def _files(folder: Path, index: dict[str, str] | None) -> tuple[str, ...]:
    present = sorted(path.name for path in folder.glob("*.safetensors") if not path.match(OTHER_FORM))
    if index is None:
        if present == [_SINGLE]:
            return (_SINGLE,)
        if not present:
            raise ModelError(f"{folder} has no *.safetensors files", hint="Other weight formats must be converted first.")
        raise ModelError(f"{folder} holds {', '.join(present)} but no {_INDEX}", hint=_MISSING_HINT)
    named = sorted(set(index.values()))
    missing, stray = sorted(set(named) - set(present)), sorted(set(present) - set(named))
    if missing:
        raise ModelError(f"{folder / _INDEX} names missing files: {', '.join(missing)}", hint=_MISSING_HINT)
    if stray:
        raise ModelError(
            f"{folder} holds files that {_INDEX} does not name: {', '.join(stray)}",
            hint="Move them away: which weights are meant is not clear.",
        )
    return tuple(named)


def _index(folder: Path) -> dict[str, str] | None:
    path = folder / _INDEX
    if not path.exists():
        return None
    try:
        weight_map = json.loads(path.read_text())["weight_map"]
        return {str(name): str(file) for name, file in weight_map.items()}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise ModelError(f"{path} is not a safetensors index", hint=_MISSING_HINT) from None


def _read_header(path: Path) -> list[StoredTensor]:
    size, file = path.stat().st_size, path.name
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > min(size - 8, _MAX_HEADER_BYTES):
                raise ValueError("header longer than the file")
            header = json.loads(stream.read(length))
        tensors, end = [], 0
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            start, stop = entry["data_offsets"]
            end = max(end, stop)
            dtype, shape = entry["dtype"], tuple(entry["shape"])
            if _bytes_of(dtype, shape) not in (None, stop - start) or stop < start:
                raise ValueError(f"{name} cannot be")
            tensors.append(StoredTensor(name, dtype, shape, stop - start, file))
    except (struct.error, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise ModelError(f"{path} is not a safetensors file", hint=_MISSING_HINT) from None
    if 8 + length + end != size:
        raise ModelError(f"{path} has {size:,} bytes, its header promises {8 + length + end:,}", hint=_MISSING_HINT)
    return tensors


@lru_cache(maxsize=4096)
def _bytes_of(dtype: str, shape: tuple[int, ...]) -> int | None:
    """Bytes that a dtype and a shape make; None for a dtype whose elements are not whole bytes, or that is not known.

    Raises:
        ValueError: they are not a name and whole numbers from 0 on.
    """
    if not isinstance(dtype, str) or any(type(size) is not int or size < 0 for size in shape):
        raise ValueError("not a dtype and a shape")
    return _DTYPE_BYTES[dtype] * math.prod(shape) if dtype in _DTYPE_BYTES else None
