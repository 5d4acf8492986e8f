"""Loading a tokenizer: what ends a text, what shows none, and what a folder lacks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from driving import failure, request, scripted_loop, serve, tokens

from roundhouse.errors import ModelError
from roundhouse.serve.engine.tokenizer import EngineTokenizer, load_tokenizer


@pytest.fixture
def folder(tiny_model, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_model("qwen2"), tmp_path / "model")


@pytest.mark.parametrize(
    ("config", "generation", "ids"),
    [(2, None, {2}), (5, 6, {2, 5, 6}), ([5, 6], [7], {2, 5, 6, 7}), (None, None, {2})],
)
def test_every_file_may_name_end_of_sequence_tokens(folder: Path, config: object, generation: object, ids: set[int]) -> None:
    data = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**data, "eos_token_id": config}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": generation}))
    assert load_tokenizer(folder).eos_ids == ids


def test_a_folder_without_a_generation_config(folder: Path) -> None:
    (folder / "generation_config.json").unlink()
    assert load_tokenizer(folder).eos_ids == {2}


def test_limits_stored_with_a_tokenizer_do_not_cut_prompts(folder: Path) -> None:
    data = json.loads((folder / "tokenizer.json").read_text())
    data["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    (folder / "tokenizer.json").write_text(json.dumps(data))
    text = "the engine house stood at the end of the yard"
    tokenizer = load_tokenizer(folder)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_special_and_padded_ids_show_no_text(tokenizer: EngineTokenizer) -> None:
    size = tokenizer.backend.get_vocab_size()
    assert [tokenizer.shows_text(token) for token in (0, 1, 2, 3, size - 1, size)] == [False] * 3 + [True, True, False]


def test_a_folder_without_a_tokenizer_is_refused(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    with pytest.raises(ModelError, match="tokenizer"):
        load_tokenizer(folder)


def test_a_damaged_config_is_named(folder: Path) -> None:
    (folder / "generation_config.json").write_text("{")
    with pytest.raises(ModelError, match=r"generation_config.json is not valid JSON"):
        load_tokenizer(folder)


def test_half_a_surrogate_pair_ends_that_request_only(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer)
    outputs = serve(loop, request("bad", "x\ud83d"), request("good", "x"))
    assert failure(outputs["bad"]).code == "invalid_request"
    assert len(tokens(outputs["good"])) == 16


def test_importing_the_loop_loads_nothing_heavy() -> None:
    code = (
        "import sys, roundhouse.serve.engine.loop, roundhouse.serve.runtimes;"
        "print([name for name in ('torch', 'transformers', 'tokenizers') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
