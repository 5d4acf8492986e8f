"""GGUF files read by their headers alone: metadata, and which tensors lie where.

A header is mostly the vocabulary, hundreds of thousands of strings; they are counted and skipped, so that reading
takes a fraction of a second and no library. The format is described in ggml's ``docs/gguf.md``.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundhouse.errors import ModelError

__all__ = ["BLOCKS", "GgufFile", "GgufList", "GgufTensor", "gguf_error", "read_gguf_file"]

BLOCKS = {
    0: (1, 4),  # F32
    1: (1, 2),  # F16
    2: (32, 18),  # Q4_0
    3: (32, 20),  # Q4_1
    6: (32, 22),  # Q5_0
    7: (32, 24),  # Q5_1
    8: (32, 34),  # Q8_0
    10: (256, 84),  # Q2_K
    11: (256, 110),  # Q3_K
    12: (256, 144),  # Q4_K
    13: (256, 176),  # Q5_K
    14: (256, 210),  # Q6_K
    16: (256, 66),  # IQ2_XXS
    17: (256, 74),  # IQ2_XS
    18: (256, 98),  # IQ3_XXS
    19: (256, 50),  # IQ1_S
    20: (32, 18),  # IQ4_NL
    21: (256, 110),  # IQ3_S
    22: (256, 82),  # IQ2_S
    23: (256, 136),  # IQ4_XS
    29: (256, 56),  # IQ1_M
    30: (1, 2),  # BF16
    34: (256, 54),  # TQ1_0
    35: (256, 66),  # TQ2_0
    39: (32, 17),  # MXFP4
}
"""ggml type → elements and bytes of one block, for the types that the import turns into 16-bit numbers."""

_F32 = 0
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_TEXT, _LIST = 8, 9
_LENGTH = struct.Struct("<Q")
_VERSIONS = (2, 3)
_MOST_ENTRIES = 1 << 24
"""More keys, tensors or words than any model has: a count above it is damage, and not worth walking through."""
_MOST_DIMENSIONS = 4
_ALIGNMENT = 32
_DAMAGED = "Download or copy the file again; nothing was loaded."


@dataclass(frozen=True)
class GgufList:
    """A list in the metadata, of which only the length is kept."""

    length: int


@dataclass(frozen=True)
class GgufTensor:
    """One tensor: shape with the outputs first, as torch has it; where its bytes start in the file, and how many."""

    name: str
    shape: tuple[int, ...]
    ggml_type: int
    start: int
    bytes: int


@dataclass(frozen=True)
class GgufFile:
    """The header of one file."""

    path: Path
    metadata: dict[str, bool | int | float | str | GgufList]
    tensors: dict[str, GgufTensor]

    def floats(self, tensor: GgufTensor) -> tuple[float, ...]:
        """The numbers of a small float32 tensor, read from the file.

        Raises:
            ModelError: it is stored as something else.
        """
        if tensor.ggml_type != _F32:
            raise gguf_error(self.path, f"{tensor.name} is not stored in float32", hint=_DAMAGED)
        with self.path.open("rb") as stream:
            stream.seek(tensor.start)
            return struct.unpack(f"<{tensor.bytes // 4}f", stream.read(tensor.bytes))


def gguf_error(path: Path, reason: str, *, hint: str) -> ModelError:
    """The error for a file that is not what it should be."""
    return ModelError(f"{path} cannot be read as a GGUF model: {reason}", hint=hint)


def read_gguf_file(path: Path) -> GgufFile:
    """Read the header of a GGUF file of version 2 or 3; no weights are read.

    Raises:
        ModelError: it is no such file, it is damaged or cut short, or a tensor has a type that is not imported.
    """
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as view:
            return _read(path, view)
    except (struct.error, ValueError, OverflowError):
        raise gguf_error(path, "its header is damaged or ends too early", hint=_DAMAGED) from None


def _read(path: Path, view: mmap.mmap) -> GgufFile:
    cursor = _Cursor(view, 4)
    if view[:4] != b"GGUF":
        raise gguf_error(path, "it does not begin with GGUF", hint="Give a .gguf file, or a Hugging Face folder.")
    version = cursor.number("<I")
    if version not in _VERSIONS:
        raise gguf_error(path, f"its version is {version}", hint="Versions 2 and 3 are read. Convert the model anew.")
    tensor_count, key_count = cursor.count(), cursor.count()
    metadata = {cursor.text(): cursor.value() for _ in range(key_count)}
    entries = [(cursor.text(), cursor.dims(), cursor.number("<I"), cursor.number("<Q")) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise ValueError("no alignment")
    data = -(-cursor.at // alignment) * alignment
    tensors = {name: _tensor(path, name, shape, kind, data + offset) for name, shape, kind, offset in entries}
    end = max((tensor.start + tensor.bytes for tensor in tensors.values()), default=data)
    if end > len(view):
        raise gguf_error(path, f"it has {len(view):,} bytes, its header promises {end:,}", hint=_DAMAGED)
    return GgufFile(path, metadata, tensors)


def _tensor(path: Path, name: str, shape: tuple[int, ...], kind: int, start: int) -> GgufTensor:
    if kind not in BLOCKS:
        hint = "Give another quantization of the model, or its Hugging Face folder."
        raise gguf_error(path, f"{name} is stored in ggml type {kind}, which is not imported", hint=hint)
    elements, size = BLOCKS[kind]
    if not shape or shape[-1] % elements:
        raise ValueError("a row of no whole number of blocks")
    return GgufTensor(name, shape, kind, start, math.prod(shape) // elements * size)


class _Cursor:
    """Walks through a header; past its end it raises."""

    def __init__(self, view: mmap.mmap, at: int) -> None:
        self._view, self.at = view, at

    def number(self, code: str) -> Any:
        """One number, by its struct code."""
        (value,) = struct.unpack_from(code, self._view, self.at)
        self.at += struct.calcsize(code)
        return value

    def count(self) -> int:
        """How many entries follow."""
        count: int = self.number("<Q")
        if count > _MOST_ENTRIES:
            raise ValueError("more entries than there can be")
        return count

    def text(self) -> str:
        """One string."""
        length = self.number("<Q")
        if length > len(self._view) - self.at:
            raise ValueError("a string longer than the file")
        self.at += length
        return self._view[self.at - length : self.at].decode()

    def dims(self) -> tuple[int, ...]:
        """A tensor's shape; files have the fastest dimension first."""
        count = self.number("<I")
        if count > _MOST_DIMENSIONS:
            raise ValueError("more dimensions than there can be")
        return tuple(self.number("<Q") for _ in range(count))[::-1]

    def value(self) -> bool | int | float | str | GgufList:
        """One metadata value after its type."""
        kind = self.number("<I")
        if kind == _TEXT:
            return self.text()
        if kind == _LIST:
            return self._list()
        if kind not in _SCALARS:
            raise ValueError("a value of no known type")
        value: bool | int | float = self.number(_SCALARS[kind])
        return value

    def _list(self) -> GgufList:
        kind, count = self.number("<I"), self.count()
        if kind == _TEXT:
            # The loop that a header's time goes to: two lookups a word.
            view, at, length = self._view, self.at, _LENGTH.unpack_from
            for _ in range(count):
                at += 8 + length(view, at)[0]
            self.at = at
        elif kind in _SCALARS:
            self.at += count * struct.calcsize(_SCALARS[kind])
        else:
            raise ValueError("a list of no known type")
        return GgufList(count)
