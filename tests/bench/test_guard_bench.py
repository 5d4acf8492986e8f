"""The whole bench of the page check on a tiny engine, and what it is told: everything is there; no number is looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import guard
import guard_bare
import guard_bench
from guard_bench import GuardBench, prompt_tokens

from roundhouse.build.engine import Engine


def test_everything_is_measured_and_told(
    tiny_engine: Engine, kernels: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guard_bench, "_IDLE_S", 0.01)
    monkeypatch.setattr(guard_bench, "_BARE_CALLS", 1)
    monkeypatch.setattr(guard_bare, "SIZES", ((2, 3),))
    bench = GuardBench(tiny_engine, concurrency=[1, 3], interleaved=[2], input_tokens=20, output_tokens=5, rounds=6)
    report = json.loads(json.dumps(bench.run()))
    assert report["engine"]["id"] == tiny_engine.manifest.id
    assert {each["guard"] for each in report["bare"]} == {"native", "torch"}
    shares = [(each["profile"]["concurrency"], each["level"], each["profile"]["steps"]) for each in report["shares"]]
    assert shares == [(concurrency, level, 5) for concurrency in (1, 3) for level in ("tags", "tags+content")]
    assert all(0 < each["of_step"] < 1 for each in report["shares"])
    cells = [each["cell"] for each in report["episodes"]]
    assert [each["system"] for each in cells[:6]] == ["off", "tags", "tags+content", "tags", "tags+content", "off"]
    assert len(cells) == 3 * 6
    assert {each["run"]["output_tokens"] for each in cells} == {10}
    assert [(each["level"], each["rounds"]) for each in report["ratios"]] == [("tags", 6), ("tags+content", 6)]
    out = capsys.readouterr().out
    assert all(title in out for title in ("The bare check", "in a decode step", "on ÷ off"))
    assert all(sentence in out for sentence in report["conclusions"])
    assert [sentence.split(":")[0] for sentence in report["conclusions"]] == ["tags, 2 at once", "tags+content, 2 at once"]


@pytest.mark.parametrize(
    ("asked", "concurrency", "tokens"), [(128, 1, 128), (128, 8, 128), (128, 32, 32), (24, 32, 24), (1, 2000, 1)]
)
def test_prompts_stay_short_where_many_are_answered_often(asked: int, concurrency: int, tokens: int) -> None:
    assert prompt_tokens(asked, concurrency) == tokens


def test_too_few_rounds_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["guard.py", "--rounds", "5"])
    with pytest.raises(SystemExit):
        guard.main()
    assert "5 rounds give no 95 % interval; it takes 6" in capsys.readouterr().err


def test_torch_is_not_imported_before_threads_are_prepared() -> None:
    look = "import sys, guard; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", look], cwd=Path(__file__).parent, check=True)
