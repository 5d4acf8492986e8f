from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from exported_engines import exported

from roundhouse.build.engine import Engine
from roundhouse.build.recipe import Guard
from roundhouse.errors import UsageError
from roundhouse.serve.export.listening import port_of, require_address, require_useful
from roundhouse.serve.export.triton import export_triton, export_trtllm_serve
from roundhouse.serve.settings import Overrides
from roundhouse.serve.trtllm_arguments import LlmPlace

OFF = Overrides(guard="off")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """For the target `trtllm-pytorch`, guarded as its recipe says."""
    return exported("qwen3-30b-a3b", tmp_path / "engines")


def place(metrics: str) -> LlmPlace:
    return LlmPlace(PurePosixPath("/models/e1"), metrics=metrics)


@pytest.mark.parametrize("host", ["0.0.0.0", "localhost", "gpu-1.example", "::", "[::1]", "fe80::1%eth0"])
def test_addresses_are_taken(host: str) -> None:
    require_address(host, 8000)
    assert port_of(f"{host}:8003") == 8003


@pytest.mark.parametrize(
    ("host", "port", "complaint"),
    [
        ("a b", 8000, "--host 'a b' is no address"),
        ("", 8000, "--host '' is no address"),
        ("$(x)", 8000, "is no address"),
        ("::", 99999, "--port 99999: a port is a number from 1 to 65535"),
        ("::", 0, "--port 0: "),
        ("::", -1, "--port -1: "),
    ],
)
def test_what_nobody_can_listen_on_is_refused(host: str, port: int, complaint: str, engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        export_trtllm_serve(engine, tmp_path / "out", place("0.0.0.0:8003"), host=host, port=port)
    assert complaint in refused.value.message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("metrics", ["8003", ":8003", "a b:8003", "0.0.0.0:", "0.0.0.0:0", "0.0.0.0:99999", "0.0.0.0:²", ""])
def test_what_is_no_address_of_the_page_check_is_refused(metrics: str) -> None:
    with pytest.raises(UsageError, match="is no address for the page check"):
        port_of(metrics)


def test_the_page_check_has_a_port_of_its_own(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--guard-metrics 0.0.0.0:8003: trtllm-serve's port is 8003, too"):
        export_trtllm_serve(engine, tmp_path / "out", place("0.0.0.0:8003"), port=8003)
    for port, whose in {8000: "HTTP", 8001: "gRPC", 8002: "metrics"}.items():
        with pytest.raises(UsageError, match=f"Triton's {whose} port is {port}, too"):
            export_triton(engine, tmp_path / "models", place(f"127.0.0.1:{port}"))
    assert not (tmp_path / "models").exists()
    assert export_trtllm_serve(engine, tmp_path / "out", place("0.0.0.0:8003"), port=8003, overrides=OFF).guard == "off"


@pytest.mark.parametrize(
    ("name", "guard", "options", "complaint"),
    [
        ("qwen3-30b-a3b", "tags", ("--python",), "--python: .* TensorRT-LLM's own Python"),
        ("qwen3-30b-a3b", "off", ("--guard-metrics", "--guard-home"), "--guard-metrics, --guard-home: with guard off"),
        ("smollm2", "tags", ("--guard-metrics",), "--guard-metrics: .* is for torch"),
        ("Llama-3.1-70B", "off", ("--python", "--guard-library"), "--guard-library: .* is for tensorrt"),
    ],
)
def test_options_that_do_nothing_are_refused(
    name: str, guard: Guard, options: tuple[str, ...], complaint: str, tmp_path: Path
) -> None:
    engine = exported(name, tmp_path)
    with pytest.raises(UsageError, match=complaint):
        require_useful(engine, guard, dict.fromkeys(options, "x"))
    require_useful(engine, guard, dict.fromkeys(options))


def test_options_that_do_something_are_taken(engine: Engine, tmp_path: Path) -> None:
    require_useful(engine, "tags", {"--guard-metrics": "x", "--guard-home": "x", "--guard-library": "x"})
    require_useful(exported("smollm2", tmp_path), "tags", {"--python": "x"})
