from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_checkpoint import TINY
from tiny_gguf import write_tiny_gguf

from roundhouse.build.home import Home
from roundhouse.build.models.sources import fetch_detail, fetch_model, fingerprint, look_up, read_model
from roundhouse.build.pipeline import build
from roundhouse.build.recipe import recipe_from
from roundhouse.errors import ModelError


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_a_folder_is_taken_as_it_is(tiny_model, home: Home) -> None:
    folder = tiny_model("llama")
    assert fetch_detail(str(folder), home) is None
    assert fetch_model(str(folder), home) == folder


@pytest.mark.parametrize("source", ["/nowhere", "nowhere", "./org/name", "demo:other"])
def test_a_source_that_is_nothing_is_named(source: str, home: Home) -> None:
    with pytest.raises(ModelError, match="there is no model"):
        fetch_detail(source, home)
    with pytest.raises(ModelError, match="there is no model"):
        fetch_model(source, home)


def test_a_missing_gguf_file_is_named(home: Home) -> None:
    with pytest.raises(ModelError, match=r"nowhere\.gguf does not exist"):
        fetch_model("nowhere.gguf", home)


def test_a_gguf_file_becomes_an_engine(tiny_model, tmp_path: Path, home: Home) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf", tiny_model("llama") / "tokenizer.json", seed=1)
    manifest = build(recipe_from({"model": str(path), "weights": "fp8"}), home, lambda event: None).engine.manifest
    assert manifest.name == "tiny-fp8-kv-fp8"
    assert manifest.plan.shape.architecture == "LlamaForCausalLM"


def test_a_gguf_file_that_was_written_anew_is_imported_anew(tiny_model, tmp_path: Path, home: Home) -> None:
    """Same name, same size, same metadata: only the weights differ."""
    path, tokenizer = tmp_path / "tiny.gguf", tiny_model("llama") / "tokenizer.json"
    first = fetch_model(str(write_tiny_gguf(path, tokenizer, seed=1)), home)
    assert fetch_detail(str(path), home) is None
    second = fetch_model(str(write_tiny_gguf(path, tokenizer, seed=2)), home)
    assert fingerprint(read_model(first)) != fingerprint(read_model(second))


def test_a_file_that_is_no_gguf_is_refused_and_leaves_nothing(tmp_path: Path, home: Home) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(ModelError, match=r"broken\.gguf cannot be read as a GGUF model"):
        fetch_model(str(broken), home)
    assert [path for path in (home.cache / "models").rglob("*") if path.is_dir() and path.name != ".building"] == []


def test_a_hub_id_without_a_network_says_what_to_do(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    # The hub's own offline switch: what it raises is what a machine without a network sees.
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(home.path / "hub"))
    with pytest.raises(ModelError, match="org/name could not be downloaded") as refused:
        fetch_model("org/name", home)
    assert "give its folder" in str(refused.value.hint)


@pytest.mark.parametrize(
    "told",
    [
        {"quant_method": "gptq", "bits": 8, "group_size": 128},
        {"quant_method": "gptq", "bits": 4, "group_size": -1},
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"},
        {"quant_method": "compressed-tensors", "config_groups": {}},
    ],
)
def test_bytes_of_a_quantization_that_is_not_known_are_not_made_up(tmp_path: Path, told: dict[str, object]) -> None:
    """Files would tell; without them the planner would take the weights for 16-bit numbers."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**TINY, "quantization_config": told}))
    with pytest.raises(ModelError, match="bytes cannot be known without the files") as refused:
        look_up(str(tmp_path))
    assert str(told["quant_method"] if "quant_algo" not in told else told["quant_algo"]) in refused.value.message
    config.write_text(json.dumps({**TINY, "quantization_config": {"quant_method": "fp8"}}))
    assert look_up(str(tmp_path))[0].quantization is not None


def test_a_fingerprint_follows_content_not_place(tiny_model, tmp_path: Path) -> None:
    import shutil

    original = tiny_model("llama")
    copy = tmp_path / "elsewhere"
    shutil.copytree(original, copy)
    assert fingerprint(read_model(copy)) == fingerprint(read_model(original))
    (copy / "tokenizer_config.json").write_text("{}")
    assert fingerprint(read_model(copy)) != fingerprint(read_model(original))
