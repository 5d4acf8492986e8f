"""Small real things shared by all tests: random models of every supported family, and engines built from them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.build.pipeline import build
from roundhouse.build.recipe import recipe_from
from roundhouse.build.texts import calibration_text
from roundhouse.errors import SetupError
from roundhouse.plugins.native_interface import load_kernels

# How long an example takes says nothing about it: a busy machine must not fail a test.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

os.environ.setdefault("GOMP_SPINCOUNT", "1000")

VOCAB = 512
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

REQUIRE_SERVICES = "ROUNDHOUSE_REQUIRE_SERVICES"
"""Set to 1 where every service must be there (CI): a skipped test is then a failed one."""

GPU_TESTS = Path(__file__).parent / "gpu"
"""What needs a GPU, nvcc or TensorRT's headers skips with a reason where they are not, in CI too."""

ModelMaker = Callable[[str], Path]
EngineMaker = Callable[..., Engine]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get(REQUIRE_SERVICES) == "1" and GPU_TESTS not in item.path.parents:
        report.outcome = "failed"
        report.longrepr = f"skipped although {REQUIRE_SERVICES}=1: {report.longrepr}"
    return report


def write_tokenizer(folder: Path, *, chat: bool = True) -> None:
    """A byte-level BPE tokenizer of VOCAB tokens, trained on the shipped calibration text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=["<pad>", "<bos>", "<eos>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([calibration_text(None)], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>")
    if chat:
        fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(folder)


def write_tiny_model(folder: Path, family: str, **changes: object) -> Path:
    """A random two-layer bf16 model whose greedy choices are well apart, with a tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    dimensions: dict[str, object] = {
        "vocab_size": VOCAB,
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "tie_word_embeddings": family == "llama",
        "sliding_window": None,
    }
    config = AutoConfig.for_model(family, **dimensions | changes)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.15)
        elif name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.05)
    model.save_pretrained(folder)
    write_tokenizer(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> ModelMaker:
    """The folder of a tiny model of a family (llama, qwen2, qwen3, mistral), made once."""
    made: dict[str, Path] = {}

    def make(family: str) -> Path:
        if family not in made:
            made[family] = write_tiny_model(tmp_path_factory.mktemp("models") / family, family)
        return made[family]

    return make


@pytest.fixture(scope="session")
def session_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home folder for engines that tests share and do not change. Its path has spaces, as users' have."""
    return Home(tmp_path_factory.mktemp("a home") / "with spaces")


@pytest.fixture(scope="session")
def kernels(session_home: Home) -> ctypes.CDLL:
    """The native kernels, compiled once for all tests."""
    try:
        return load_kernels(session_home.kernels)
    except SetupError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def build_engine(tiny_model: ModelMaker, session_home: Home) -> EngineMaker:
    """Build an engine of a tiny model through the real pipeline; the same recipe is built once."""

    def make(family: str = "llama", **keys: object) -> Engine:
        recipe = recipe_from({"model": str(tiny_model(family)), "max_batch_size": 8, "max_seq_len": 256, **keys})
        return build(recipe, session_home, lambda event: None).engine

    return make


@pytest.fixture(scope="session")
def tiny_engine(build_engine: EngineMaker) -> Engine:
    """INT4 AWQ weights, FP8 KV: the default recipe on a tiny Llama with a chat template."""
    return build_engine()
