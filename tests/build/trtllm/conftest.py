"""Tiny models that four ranks share out as real ones are, and their verified checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from verified_checkpoints import VerifiedCheckpoint, verified_checkpoint

from roundhouse.build.models.sources import Model, read_model

CheckpointMaker = Callable[..., VerifiedCheckpoint]


def write_wide_model(folder: Path, family: str, tokenizer_from: Path) -> Path:
    """A random model of 8 heads with 2 key/value heads, whose sizes TensorRT-LLM's INT4 kernels take on 4 ranks."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(
        family,
        vocab_size=514,  # no multiple of 4: the head is padded
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=3,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=512,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        tie_word_embeddings=family == "llama",
        sliding_window=None,
    )
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    for name, parameter in model.named_parameters():
        torch.nn.init.normal_(parameter, mean=float("norm" in name), std=0.1)
    model.save_pretrained(folder)
    for file in tokenizer_from.glob("*token*"):
        shutil.copy(file, folder)
    return folder


@pytest.fixture(scope="session")
def wide_model(tiny_model: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Model]:
    """The wide model of a family, made once."""
    made: dict[str, Model] = {}

    def make(family: str) -> Model:
        if family not in made:
            folder = tmp_path_factory.mktemp("models") / family
            made[family] = read_model(write_wide_model(folder, family, tiny_model("llama")))
        return made[family]

    return make


@pytest.fixture(scope="session")
def checkpoint_of(wide_model: Callable[[str], Model], tmp_path_factory: pytest.TempPathFactory) -> CheckpointMaker:
    """The verified checkpoint of a family's wide model, by its recipe keys; each is made once. INT4 and FP8 KV by default."""
    made: dict[tuple[str, str], VerifiedCheckpoint] = {}

    def make(family: str, **keys: object) -> VerifiedCheckpoint:
        key = family, repr(keys)
        if key not in made:
            folder = tmp_path_factory.mktemp("checkpoints") / family
            made[key] = verified_checkpoint(
                wide_model(family), folder, group_size=64 if "weights" not in keys else "auto", **keys
            )
        return made[key]

    return make
