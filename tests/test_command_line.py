"""The command line as a user meets it: exit codes, JSON, and errors without tracebacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.errors import RoundhouseError


@pytest.fixture
def roundhouse(session_home: Home):
    """Run the real command in a process of its own."""

    def run(*arguments: str, home: Path | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "roundhouse", *arguments],
            capture_output=True,
            text=True,
            check=False,
            input=stdin,
            env={**os.environ, "ROUNDHOUSE_HOME": str(home or session_home.path), "COLUMNS": "120"},
        )

    return run


def test_plan_answers_in_json(roundhouse, tiny_model) -> None:
    result = roundhouse("plan", str(tiny_model("llama")), "--kv", "bf16", "--set", "kv_cache_tokens=640", "--json")
    assert result.returncode == 0
    plan = json.loads(result.stdout)
    assert plan["legal"] is True
    assert (plan["pages"], plan["binding_limit"]) == (40, "kv_cache_tokens")


def test_recipes_and_gpus_are_planned_side_by_side(roundhouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a short path fits its column wherever tests run
    Path("decode.yaml").write_text("model: shape:llama-3.1-8b\nweights: int4_awq\n")
    arguments = ["plan", "shape:llama-3.1-8b", "./decode.yaml", "--gpu", "h200", "--gpu", "l40s", "--request-tokens", "4096"]
    plans = json.loads(roundhouse(*arguments, "--json").stdout)
    assert plans["schema"] == "roundhouse.plans/1"
    assert [plan["gpu"] for plan in plans["plans"]] == ["H200-SXM", "L40S", "H200-SXM", "L40S"]
    shown = roundhouse(*arguments).stdout
    assert "decode.yaml" in shown
    assert "≠  hardware" in shown


def test_nested_keys_are_set_with_dots(tiny_model, tmp_path: Path) -> None:
    from roundhouse.build.recipe_options import recipe_for

    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"model: {tiny_model('llama')}\ncalibration: {{tokens: 64}}\n")
    read = recipe_for(str(recipe), ["calibration.samples=2", "guard=off", "calibration.alpha_step=0.5"], weights="fp8")
    assert (read.calibration.tokens, read.calibration.samples, read.calibration.alpha_step) == (64, 2, 0.5)
    assert (read.guard, read.weights) == ("off", "fp8")


def test_a_refused_plan_ends_with_3_and_still_gives_numbers(roundhouse, tiny_model) -> None:
    result = roundhouse("plan", str(tiny_model("llama")), "--weights", "nvfp4", "--json")
    assert result.returncode == 3
    plan = json.loads(result.stdout)
    assert plan["legal"] is False
    assert plan["problems"][0]["legal_alternatives"] == ["int4_awq", "fp8", "bf16"]
    assert plan["kv_bytes_per_token"] > 0


def test_a_plan_says_what_this_version_does_not_build(roundhouse) -> None:
    arguments = ["plan", "shape:qwen3-30b-a3b", "--gpu", "h200", "--target", "trtllm-pytorch", "--weights"]
    planned, built = roundhouse(*arguments, "fp8"), roundhouse(*arguments, "bf16")
    assert (planned.returncode, built.returncode) == (0, 0)
    assert "Verdict: legal, not built by this version" in planned.stdout
    assert "Not built by this version\n" in planned.stdout
    assert "not built" not in built.stdout
    assert "Qwen3MoeForCausalLM" in json.loads(roundhouse(*arguments, "fp8", "--json").stdout)["unbuilt"]
    assert json.loads(roundhouse(*arguments, "bf16", "--json").stdout)["unbuilt"] is None


def test_a_refused_recipe_is_not_built(roundhouse, tiny_model, tmp_path: Path) -> None:
    result = roundhouse("build", str(tiny_model("llama")), "--group", "96", home=tmp_path)
    assert result.returncode == 3
    assert "96" in result.stderr
    assert not (tmp_path / "engines").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["plan", "/nowhere"], 1, "there is no model '/nowhere'"),
        (["plan", "nowhere.yaml"], 2, "nowhere.yaml does not exist"),
        (["plan", "x", "--set", "kv_cache_memory_fracton=0.5"], 2, "did you mean 'memory_fraction'"),
        (["plan", "x", "--set", "weights"], 2, "write KEY=VALUE"),
        (
            ["plan", "x", "--set", "calibration=3", "--set", "calibration.samples=1", "--set", "calibration=3"],
            2,
            "calibration:",
        ),
        (["plan", "x", "--weights", "fp8", "--set", "weights.x=1"], 2, "weights:"),
        (["plan", "x", "--set", "seed={[1]: 2}"], 2, "is not a value"),
        (["plan", "x", "--set", "calibration.a.b=1"], 2, "unknown key 'calibration.a.b'"),
        (["plan", "x", "--weights", "int3"], 2, "weights"),
        (["build", "x", "--kv", "fp4"], 2, "kv_cache"),
        (["build", "x", "--tp", "0"], 2, "tensor_parallel"),
        (["build", "x", "--pp", "0"], 2, "pipeline_parallel"),
        (["build", "x", "--ep", "0"], 2, "expert_parallel"),
        (["build", "shape:llama-3.1-8b"], 1, "shapes are for planning only"),
        (["engines", "show", "nothing"], 2, "no engine is called 'nothing'"),
        (["generate", "nothing", "hello"], 2, "no engine is called 'nothing'"),
        (["serve", "nothing"], 2, "no engine is called 'nothing'"),
        (["serve", "x", "--max-seq-len", "0"], 2, "--max-seq-len"),
        (["serve", "x", "--guard", "maybe"], 2, "--guard"),
        (["bogus"], 2, "No such command"),
        (["plan"], 2, "say what to plan"),
        (["plan", "shape:llama-3.1-8b", "--gpu", "h20"], 2, "'h20' is not in the table of GPUs"),
        (["plan", "shape:llama-3.1-8b", "--gpu", ""], 2, "is not in the table of GPUs"),
        (["plan", "shape:llama-3.1-8"], 1, "Did you mean llama-3.1-8b"),
        (["plan", "shape:kimi-k2.6@fp4"], 1, "has no form 'fp4'"),
        (["plan", "shape:llama-3.1-8b", "--request-tokens", "999999"], 2, "above the 131,072 that"),
        (["plan", "shape:llama-3.1-8b", "--weights", "int4"], 2, "did you mean 'int4_awq'"),
        (["plan", "shape:llama-3.1-8b", "--group", "abc"], 2, "expected auto or a whole number (got 'abc')"),
        (["plan", "shape:llama-3.1-8b", "--tp", "0"], 2, "tensor_parallel"),
        (["plan", "shape:llama-3.1-8b", "--kv-tokens", "1", "--kv-bytes", "1"], 2, "exclude each other"),
        (["plan", "--published", "shape:llama-3.1-8b"], 2, "--published takes no MODEL"),
        (["plan", "x", "--set", "calibration=" + "{a: " * 2000 + "}" * 2000], 2, "is not a value"),
    ],
)
def test_a_users_mistake_is_one_clear_message(roundhouse, tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    result = roundhouse(*arguments, home=tmp_path)
    assert result.returncode == code, result.stderr
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file or directory", "/x/y"), "error: /x/y: No such file or directory\nNothing is half"),
        (OSError(28, "No space left on device", "/x/y"), "Free space or choose another folder."),
    ],
)
def test_a_place_that_is_missing_is_no_lack_of_space(
    error: OSError, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from roundhouse import __main__ as command_line

    def fail() -> None:
        raise error

    monkeypatch.setattr(command_line, "_run", fail)
    with pytest.raises(SystemExit):
        command_line.main()
    said = capsys.readouterr().err
    assert words in said
    assert ("space" in said) == (error.errno == 28)


def in_process(*arguments: str) -> tuple[str, str]:
    """Standard output, and what was refused: quicker than a process, where many options are tried."""
    from typer.testing import CliRunner

    from roundhouse.__main__ import app

    result = CliRunner().invoke(app, arguments)
    refused = str(result.exception) if isinstance(result.exception, RoundhouseError) else result.stderr
    assert (result.exit_code == 0) is (refused == "")
    return result.stdout, refused


BESIDE = {
    "sources": ["shape:llama-3.1-8b"], "attention_dp": ["--attention-dp"], "target": ["--target", "torch"],
    "gpu": ["--gpu", "h200"], "settings": ["--set", "seed=0"], "memory_fraction": ["--memory-fraction", "0.5"],
    "price_per_gpu_hour": ["--price-per-gpu-hour", "0"],
}  # fmt: skip


def test_published_numbers_go_with_no_other_option() -> None:
    import typer

    from roundhouse.__main__ import app

    command = typer.main.get_command(app).commands["plan"]  # type: ignore[attr-defined]  # of a group
    others = [parameter for parameter in command.params if parameter.name not in ("published", "json")]
    assert set(BESIDE) < {parameter.name for parameter in others}
    for parameter in others:
        given = BESIDE.get(parameter.name) or [parameter.opts[0], "1"]
        named = "MODEL" if parameter.name == "sources" else given[0]
        shown, refused = in_process("plan", *given, "--published", "--json")
        assert (shown, refused.partition("\n")[0]) == ("", f"--published takes no {named}")
    shown, refused = in_process("plan", "--published", "--json")
    assert refused == ""
    assert len(strict_json(shown)) > 10


def strict_json(text: str) -> Any:
    """JSON as its standard has it: Python reads NaN and Infinity, others do not."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("calibration=" + "{a: " * 50 + "1" + "}" * 50, "nested too deeply"),
        ("seed=2024-13-45", "'2024-13-45' is not a value"),
        ("page_tokens=true", "page_tokens: it takes neither true nor false"),
        (f"page_tokens={10**400}", "page_tokens: nothing is so large"),
    ],
)
def test_a_value_that_no_key_takes_is_named(setting: str, words: str) -> None:
    assert words in in_process("plan", "shape:llama-3.1-8b", "--set", setting)[1]


@pytest.mark.parametrize("price", ["inf", "nan", "1e999", "1e308"])
def test_a_price_that_leads_to_no_number_is_refused(price: str) -> None:
    model = ["plan", "shape:llama-3.1-8b", "--gpu", "h200", "--tp", "8", "--target", "trtllm-pytorch", "--weights", "fp8"]
    for form in ([], ["--json"]):
        shown, refused = in_process(*model, "--price-per-gpu-hour", price, *form)
        assert shown == ""
        assert "--price-per-gpu-hour" in refused
    shown, _ = in_process(*model, "--price-per-gpu-hour", "2.5", "--json")
    assert strict_json(shown)["decode"][0]["price_per_million_tokens"] > 0


def test_json_has_no_words_for_numbers_that_are_none() -> None:
    from roundhouse.build.command_options import print_json

    for number in (float("inf"), float("nan")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            print_json({"numbers": [number]})


def test_engines_are_listed_shown_and_verified(roundhouse, tiny_engine: Engine) -> None:
    listed = json.loads(roundhouse("engines", "list", "--json").stdout)
    assert tiny_engine.manifest.id in [engine["id"] for engine in listed["engines"]]
    shown = json.loads(roundhouse("engines", "show", tiny_engine.manifest.id, "--json").stdout)
    assert shown["kv_scales"]["state"] == "calibrated"
    assert roundhouse("engines", "verify", tiny_engine.manifest.id).returncode == 0
    for command in (["engines", "list"], ["engines", "show", tiny_engine.manifest.id]):
        assert tiny_engine.manifest.id in roundhouse(*command).stdout


def test_remove_asks_first(roundhouse, tiny_engine: Engine, tmp_path: Path) -> None:
    import shutil

    copy = Home(tmp_path).engines / tiny_engine.manifest.id
    shutil.copytree(tiny_engine.folder, copy)
    refused = roundhouse("engines", "remove", tiny_engine.manifest.id, home=tmp_path, stdin="n\n")
    assert refused.returncode == 1
    assert copy.exists()
    removed = roundhouse("engines", "remove", tiny_engine.manifest.id, "--yes", "--json", home=tmp_path)
    assert json.loads(removed.stdout) == {"removed": tiny_engine.manifest.id}
    assert not copy.exists()


def test_generate_streams_an_answer(roundhouse, tiny_engine: Engine) -> None:
    answer = roundhouse("generate", tiny_engine.manifest.id, "Alice was", "--raw", "--max-tokens", "6", "--json")
    assert answer.returncode == 0, answer.stderr
    parsed = json.loads(answer.stdout)
    assert parsed["completion_tokens"] == 6
    assert parsed["finish_reason"] == "length"
    assert (parsed["tag_checks"], parsed["tag_mismatches"]) == (6, 0)
    streamed = roundhouse("generate", tiny_engine.manifest.id, "Alice was", "--raw", "--max-tokens", "6")
    assert streamed.stdout.rstrip("\n") == parsed["text"].rstrip("\n")


def test_generate_without_the_guard_checks_nothing(roundhouse, tiny_engine: Engine) -> None:
    off = roundhouse("generate", tiny_engine.manifest.id, "Alice", "--max-tokens", "3", "--guard", "off", "--json")
    assert json.loads(off.stdout)["tag_checks"] == 0


@pytest.mark.parametrize("option", [["--top-k", "-1"], ["--top-p", "2"], ["--temperature", "nan"], ["--max-tokens", "-1"]])
def test_impossible_sampling_is_a_usage_error(roundhouse, tiny_engine: Engine, option: list[str]) -> None:
    result = roundhouse("generate", tiny_engine.manifest.id, "x", *option)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_doctor_finds_what_the_torch_target_needs(roundhouse) -> None:
    result = roundhouse("doctor", "--json")
    assert result.returncode == 0
    findings = {finding["name"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert {"Python", "numpy", "torch", "Triton", "NVIDIA GPU", "/dev/shm", "C++ compiler", "memory", "disk"} <= set(findings)
    assert findings["Triton"]["state"] == findings["numpy"]["state"] == "ok"
    assert roundhouse("doctor").returncode == 0


_WITHOUT_EXTRAS = """
import sys
for name in ("torch", "transformers", "modelopt", "safetensors", "gguf", "numpy", "msgspec", "zmq", "fastapi", "httpx",
             "uvicorn", "tritonclient", "huggingface_hub"):
    sys.modules[name] = None  # as if it were not installed
from roundhouse.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "arguments",
    [["build", "MODEL"], ["generate", "x", "y"], ["serve", "x"], ["demo"], ["plan", "org/name"]],
)
def test_a_base_install_says_which_extra_a_command_needs(tiny_model, tmp_path: Path, arguments: list[str]) -> None:
    arguments = [str(tiny_model("llama")) if word == "MODEL" else word for word in arguments]
    command = [sys.executable, "-c", _WITHOUT_EXTRAS, *arguments]
    environment = {**os.environ, "ROUNDHOUSE_HOME": str(tmp_path)}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 1
    assert "pip install 'roundhouse-llm[" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_base_install_plans_and_lists(tiny_model, tmp_path: Path) -> None:
    for arguments in (
        ["plan", str(tiny_model("llama")), "--json"],
        ["plan", "demo:smollm2"],
        ["plan", "shape:kimi-k2", "--gpu", "h200", "--tp", "8"],
        ["plan", "--published"],
        ["engines", "list"],
        ["--version"],
    ):
        command = [sys.executable, "-c", _WITHOUT_EXTRAS, *arguments]
        environment = {**os.environ, "ROUNDHOUSE_HOME": str(tmp_path)}
        result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert result.returncode == 0, result.stderr


def test_version(roundhouse) -> None:
    from roundhouse import __version__

    assert roundhouse("--version").stdout.strip() == __version__


def test_engines_that_a_command_starts_spin_as_their_own_process_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command line puts into its environment is what processes below it find, and keep."""
    from roundhouse import __main__
    from roundhouse.serve.threads import SPIN_COUNT, prepare_threads

    monkeypatch.setattr(sys, "argv", ["roundhouse", "--version"])
    for name in ("GOMP_SPINCOUNT", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    with pytest.raises(SystemExit):
        __main__.main()
    prepare_threads()
    assert os.environ["GOMP_SPINCOUNT"] == SPIN_COUNT
