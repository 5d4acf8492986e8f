"""Model folders that are incomplete or contradict themselves are refused before anything is loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from roundhouse.build.models.checkpoint import read_checkpoint
from roundhouse.errors import ModelError

_INDEX = "model.safetensors.index.json"
_SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """Two shards with one bf16 [4, 8] tensor each, and their index."""
    for shard, name in zip(_SHARDS, "ab", strict=True):
        save_file({name: torch.zeros(4, 8, dtype=torch.bfloat16)}, tmp_path / shard)
    (tmp_path / _INDEX).write_text(json.dumps({"weight_map": dict(zip("ab", _SHARDS, strict=True))}))
    return tmp_path


def test_bytes_are_counted_as_stored(sharded: Path) -> None:
    checkpoint = read_checkpoint(sharded)
    assert checkpoint.tensor_bytes == 2 * 4 * 8 * 2
    assert checkpoint.main_dtype == "bfloat16"
    assert {tensor.file for tensor in checkpoint.tensors.values()} == set(_SHARDS)


def test_bytes_of_fp8_are_one_a_weight(tmp_path: Path) -> None:
    save_file({"w": torch.zeros(16, 16).to(torch.float8_e4m3fn), "s": torch.ones(1)}, tmp_path / "model.safetensors")
    assert read_checkpoint(tmp_path).tensor_bytes == 256 + 4


def test_a_missing_shard_is_named(sharded: Path) -> None:
    (sharded / _SHARDS[1]).unlink()
    with pytest.raises(ModelError, match=_SHARDS[1]):
        read_checkpoint(sharded)


def test_a_stray_file_beside_the_index_is_named(sharded: Path) -> None:
    save_file({"a": torch.zeros(1)}, sharded / "model.safetensors")
    with pytest.raises(ModelError, match=r"does not name: model\.safetensors"):
        read_checkpoint(sharded)


def test_the_makers_own_form_beside_it_is_not_read(sharded: Path) -> None:
    save_file({"a": torch.zeros(1)}, sharded / "consolidated.safetensors")
    assert set(read_checkpoint(sharded).files) == set(_SHARDS)


def test_shards_without_an_index_are_refused(sharded: Path) -> None:
    (sharded / _INDEX).unlink()
    with pytest.raises(ModelError, match=_SHARDS[0]):
        read_checkpoint(sharded)


@pytest.mark.parametrize("keep", [4, 30, -1])
def test_a_truncated_file_is_named(sharded: Path, keep: int) -> None:
    shard = sharded / _SHARDS[0]
    shard.write_bytes(shard.read_bytes()[:keep])
    with pytest.raises(ModelError, match=_SHARDS[0]):
        read_checkpoint(sharded)


def test_an_index_that_places_a_tensor_wrongly_is_refused(sharded: Path) -> None:
    (sharded / _INDEX).write_text(json.dumps({"weight_map": {"a": _SHARDS[0], "b": _SHARDS[1], "c": _SHARDS[1]}}))
    with pytest.raises(ModelError, match="places c in"):
        read_checkpoint(sharded)


@pytest.mark.parametrize("text", ["{", '{"weight_map": []}', "[]"])
def test_a_broken_index_is_refused(sharded: Path, text: str) -> None:
    (sharded / _INDEX).write_text(text)
    with pytest.raises(ModelError, match="not a safetensors index"):
        read_checkpoint(sharded)


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": ["x"]},
        {"shape": [2, -1]},
        {"shape": [3]},
        {"shape": [True]},
        {"shape": 5},
        {"dtype": 7},
        {"dtype": "F64"},
        {"data_offsets": [8, 0]},
        {"data_offsets": [0]},
    ],
)
def test_a_header_that_contradicts_itself_is_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}
    header = json.dumps({"a": entry}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ModelError, match="is not a safetensors file"):
        read_checkpoint(tmp_path)


def test_a_header_of_endless_depth_is_refused(tmp_path: Path) -> None:
    header = b'{"a":' * 100_000
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ModelError, match="is not a safetensors file"):
        read_checkpoint(tmp_path)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no \*\.safetensors"):
        read_checkpoint(tmp_path)
