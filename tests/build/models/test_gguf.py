"""A GGUF file is planned by its header, as the folder that its import writes; what the import would garble is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_gguf import write_tiny_gguf

from roundhouse.build.hardware import this_machine
from roundhouse.build.home import Home
from roundhouse.build.models.gguf import read_gguf
from roundhouse.build.models.gguf_file import BLOCKS
from roundhouse.build.models.sources import fetch_model, look_up, read_model
from roundhouse.build.planner.plan import make_plan
from roundhouse.build.recipe import recipe_from
from roundhouse.errors import ModelError

LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


def llama3_factors(head_dim: int = 16, **changes: float) -> np.ndarray[Any, Any]:
    """What Llama 3's frequencies are divided by, from transformers' own rule."""
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    rope = {"rope_type": "llama3", "rope_theta": 10000.0, **LLAMA3, **changes}
    config = LlamaConfig(head_dim=head_dim, max_position_embeddings=131072, rope_parameters=rope)
    scaled = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")[0].numpy()
    plain = 10000.0 ** -(np.arange(0, head_dim, 2) / head_dim)
    factors: np.ndarray[Any, Any] = np.round(plain / scaled, 5)
    return factors


LINEAR = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
YARN = {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0}
FILES: dict[str, Callable[[], dict[str, Any]]] = {
    "llama": dict,
    "llama with tied embeddings": lambda: {"tied": True},
    "llama with wide heads": lambda: {"head_dim": 32, "keys": {"llama.vocab_size": None}},
    "llama with wide heads told as keys": lambda: {
        "head_dim": 32,
        "keys": {"llama.rope.dimension_count": None, "llama.attention.key_length": 32},
    },
    "qwen2": lambda: {"architecture": "qwen2", "tied": True},
    "qwen3": lambda: {"architecture": "qwen3", "head_dim": 32},
    "linear scaling": lambda: {"keys": LINEAR},
    "yarn scaling": lambda: {"keys": YARN | {"llama.rope.scaling.original_context_length": 64}},
    "llama 3 scaling": lambda: {"tensors": {"rope_freqs.weight": llama3_factors()}},
    "no scaling, written out": lambda: {"tensors": {"rope_freqs.weight": np.ones(8)}},
}
ROPES = {"linear scaling": "linear", "yarn scaling": "yarn", "llama 3 scaling": "llama3"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def tiny(tiny_model, tmp_path: Path) -> Callable[..., Path]:
    """Write a tiny GGUF file with some changes."""

    def write(**changes: Any) -> Path:
        return write_tiny_gguf(tmp_path / "tiny.gguf", tiny_model("llama") / "tokenizer.json", seed=1, **changes)

    return write


@pytest.mark.parametrize("file", FILES)
def test_a_file_is_planned_as_the_folder_that_its_import_writes(tiny, home: Home, file: str) -> None:
    path = tiny(**FILES[file]())
    shape, inventory = look_up(str(path))
    assert not home.path.exists()
    folder = read_model(fetch_model(str(path), home))
    assert shape.rope == ROPES.get(file, "default")
    assert (shape.dtype_from, shape.unread) == ("the GGUF import, which writes bf16", ())
    assert shape.model_copy(update={"dtype_from": "config.json dtype"}) == folder.shape
    assert inventory == folder.inventory
    config = json.loads((folder.folder / "config.json").read_text())
    assert config["rope_parameters"] == read_gguf(path).config["rope_parameters"]
    hardware = this_machine()
    for weights in ("bf16", "fp8", "int4_awq"):
        recipe = recipe_from({"model": str(path), "weights": weights, "group_size": 32 if weights == "int4_awq" else "auto"})
        from_header, from_folder = (
            make_plan(recipe, *read, hardware) for read in ((shape, inventory), (folder.shape, folder.inventory))
        )
        assert from_header.base_bytes == folder.checkpoint.tensor_bytes
        assert from_header.model_dump(exclude={"shape"}) == from_folder.model_dump(exclude={"shape"})


def test_llama_3_scaling_is_found_in_the_numbers_that_it_made(tiny) -> None:
    path = tiny(tensors={"rope_freqs.weight": llama3_factors()})
    assert read_gguf(path).config["rope_parameters"] == {"rope_type": "llama3", "rope_theta": 10000.0, **LLAMA3}


def test_yarn_stretches_the_context_length_when_no_other_is_told(tiny) -> None:
    assert read_gguf(tiny(keys=YARN)).config["rope_parameters"]["original_max_position_embeddings"] == 256


def test_a_key_that_is_not_known_is_listed(tiny) -> None:
    shape, _ = look_up(str(tiny(keys={"llama.attention.sliding_window": 16})))
    assert shape.unread == ("llama.attention.sliding_window",)


_WITHOUT_LIBRARIES = """
import sys
for name in ("torch", "transformers", "gguf", "numpy", "safetensors"):
    sys.modules[name] = None  # as if it were not installed
from roundhouse.build.models.sources import look_up
print(look_up(sys.argv[1])[1].stored_bytes)
"""


def test_a_file_is_looked_up_without_any_library(tiny, tmp_path: Path) -> None:
    path = tiny()
    command = [sys.executable, "-c", _WITHOUT_LIBRARIES, str(path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert int(told) == read_gguf(path).checkpoint.tensor_bytes


@pytest.mark.parametrize("kind", BLOCKS)
def test_the_size_of_a_block_is_what_the_import_reads(kind: int) -> None:
    elements, size = BLOCKS[kind]
    block = np.zeros((1, size), dtype=np.uint8)
    assert gguf.dequantize(block, gguf.GGMLQuantizationType(kind)).shape == (1, elements)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "gemma2"}, r"architecture is 'gemma2'\nImported are: llama, qwen2, qwen3"),
        ({"keys": {"split.count": 3}}, r"one of 3 parts\nJoin them"),
        ({"keys": {"llama.attention.head_count_kv": None}}, "has no llama.attention.head_count_kv"),
        ({"keys": {"llama.attention.head_count_kv": [2, 1]}}, "head_count_kv differs from layer to layer"),
        ({"keys": {"llama.embedding_length": 0}}, "embedding_length is 0"),
        ({"keys": {"llama.block_count": 1 << 31}}, "num_hidden_layers is 2147483648"),
        ({"keys": {"llama.block_count": 1}}, "a LlamaForCausalLM does not have: blk.1.attn_k.weight, .* and 5 more"),
        ({"keys": {"llama.attention.value_length": 8}}, "differ; heads of one size"),
        ({"tensors": {"blk.0.attn_q.bias": (64,)}}, "does not have: blk.0.attn_q.bias"),
        ({"tensors": {"blk.1.ffn_up.weight": None}}, "no tensors for: model.layers.1.mlp.up_proj.weight"),
        ({"tensors": {"token_embd.weight": (520, 64)}}, r"token_embd.weight is \[520, 64\], its metadata makes it \[512, 64\]"),
        ({"keys": {"llama.rope.scaling.type": "longrope"}}, "scaling.type 'longrope'"),
        ({"keys": {"llama.rope.scaling.attn_factor": 2.0}}, "llama.rope.scaling.attn_factor"),
        ({"keys": {"llama.rope.freq_base": float("nan")}}, "freq_base nan"),
        ({"keys": {"llama.rope.scaling.type": "linear"}}, "scaling.factor is None"),
        ({"keys": LINEAR, "tensors": {"rope_freqs.weight": np.ones(8)}}, "beside rope_freqs.weight"),
        ({"tensors": {"rope_freqs.weight": np.linspace(1, 8, 8)}}, "in another way than Llama 3 does"),
        ({"tensors": {"rope_freqs.weight": np.ones(4)}}, "in another way than Llama 3 does"),
    ],
)
def test_a_file_that_would_be_garbled_is_refused_by_plan_and_build(
    tiny, home: Home, changes: dict[str, Any], message: str
) -> None:
    path = str(tiny(**changes))
    for read in (look_up, lambda source: fetch_model(source, home)):
        with pytest.raises(ModelError, match=message) as refused:
            read(path)
        assert refused.value.hint
    assert not list(home.path.rglob("config.json"))


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (b"", "damaged"),
        (b"GG", "does not begin with GGUF"),
        (b"PK\x03\x04" + bytes(64), "does not begin with GGUF"),
        (b"GGUF", "damaged"),
        (b"GGUF\x01\x00\x00\x00" + bytes(64), "its version is 1"),
        (b"GGUF\x03\x00\x00\x00" + b"\xff" * 64, "damaged"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, start: bytes, message: str) -> None:
    path = tmp_path / "none.gguf"
    path.write_bytes(start)
    with pytest.raises(ModelError, match=rf"none\.gguf cannot be read as a GGUF model.*{message}"):
        read_gguf(path)


def test_a_type_that_is_not_imported_is_refused(tiny) -> None:
    path = tiny()
    name = b"blk.0.attn_norm.weight"
    content = bytearray(path.read_bytes())
    kind = content.index(name) + len(name) + 4 + 8  # behind the number of dimensions and one dimension
    content[kind] = 40
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"blk\.0\.attn_norm\.weight is stored in ggml type 40"):
        read_gguf(path)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keep=st.floats(0, 1, exclude_max=True))
def test_a_file_that_was_cut_short_is_refused_wherever_it_was_cut(tiny, tmp_path: Path, keep: float) -> None:
    whole, cut = tiny().read_bytes(), tmp_path / "cut.gguf"
    cut.write_bytes(whole[: int(keep * len(whole))])
    with pytest.raises(ModelError, match=r"cut\.gguf cannot be read as a GGUF model"):
        read_gguf(cut)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_header_is_read_or_refused_and_nothing_else(tiny, tmp_path: Path, data: st.DataObject) -> None:
    path, damaged = tmp_path / "whole.gguf", tmp_path / "damaged.gguf"
    if not path.exists():
        path.write_bytes(tiny().read_bytes())
    content = bytearray(path.read_bytes())
    header = len(content) - read_gguf(path).checkpoint.tensor_bytes * 2  # float32 in the file, bf16 once imported
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(4, header - 1))] = data.draw(st.integers(0, 255))
    damaged.write_bytes(content)
    try:
        tensors = read_gguf(damaged).checkpoint.tensors
    except ModelError:
        return
    assert tensors
