"""Workloads by name and from files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from roundhouse.errors import UsageError
from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.benchmark.workload_files import shipped_workloads, workload_named


def written(tmp_path: Path, text: str, name: str = "mine.yaml") -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_shipped_ones_are_what_their_names_say() -> None:
    shipped = shipped_workloads()
    assert {"chat", "fixed", "decode-heavy", "prefill-heavy", "long-context", "shared-prefix", "cancelling"} == set(shipped)
    assert all(workload.name == name == workload_named(name).name for name, workload in shipped.items())
    assert len({workload.key for workload in shipped.values()}) == len(shipped)
    assert shipped["fixed"] == Workload()
    assert shipped["decode-heavy"].output_tokens > 4 * shipped["decode-heavy"].input_tokens
    assert shipped["prefill-heavy"].input_tokens > 4 * shipped["prefill-heavy"].output_tokens
    assert shipped["shared-prefix"].prefix_tokens > shipped["shared-prefix"].input_tokens / 2
    assert shipped["cancelling"].cancel_share > 0
    assert shipped["chat"].input_spread > 0


def test_a_file_is_named_after_itself_unless_it_says_otherwise(tmp_path: Path) -> None:
    assert workload_named(written(tmp_path, "input_tokens: 99")) == Workload(name="mine", input_tokens=99)
    assert workload_named(written(tmp_path, "name: ours")).name == "ours"
    assert workload_named(written(tmp_path, "")) == Workload(name="mine")


def test_a_folder_of_workloads_adds_names(tmp_path: Path) -> None:
    written(tmp_path, "output_tokens: 3", "short.yaml")
    assert workload_named("short", tmp_path).output_tokens == 3
    with pytest.raises(UsageError, match="no workload is called 'short'"):
        workload_named("short")


def test_conversations_come_from_a_file_by_itself_or_beside_the_yaml(tmp_path: Path) -> None:
    talks = written(tmp_path, '{"prompt": "Hello."}\n', "talks.jsonl")
    alone = workload_named(talks)
    assert (alone.name, alone.kind, alone.file) == ("talks", "conversations", str(Path(talks).resolve()))
    beside = workload_named(written(tmp_path, "file: talks.jsonl\noutput_tokens: 9"))
    assert (beside.kind, beside.file, beside.file_sha256, beside.output_tokens) == (
        "conversations",
        alone.file,
        alone.file_sha256,
        9,
    )
    assert alone.words == "conversations of talks.jsonl, 64 out"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("input_token: 3", r"unknown key 'input_token' \(did you mean 'input_tokens'\?\)"),
        ("kind: conversations", "unknown key 'kind'"),
        ("1: 2", "unknown key 1"),
        ("input_tokens: 0", r"input_tokens: Input should be greater than or equal to 1 \(got 0\)"),
        ("input_tokens: true", "input_tokens: Input should be a valid integer"),
        ("input_tokens: '12'", "input_tokens: Input should be a valid integer"),
        ("input_tokens: .inf", "input_tokens"),
        ("cancel_share: 1", "cancel_share: Input should be less than 1"),
        ("cancel_share: .nan", "cancel_share"),
        ("input_tokens: 8\nprefix_tokens: 8", "prefix_tokens must be fewer than input_tokens"),
        ("input_tokens: 8\ninput_tokens: 9", "stands twice"),
        ("- 1", "holds no workload"),
        ("a: [", "is not YAML"),
        ("file: nowhere.jsonl", r"nowhere\.jsonl cannot be read: No such file"),
    ],
)
def test_what_is_wrong_in_a_file_is_told(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        workload_named(written(tmp_path, text))


def test_a_name_that_is_none_tells_the_nearest_and_all() -> None:
    with pytest.raises(UsageError, match=r"no workload is called 'decode-hevy'; did you mean 'decode-heavy'\?") as caught:
        workload_named("decode-hevy")
    assert "shared-prefix" in str(caught.value.hint)


def test_files_that_are_missing_or_of_another_kind_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing\.yaml cannot be read: No such file"):
        workload_named(str(tmp_path / "nothing.yaml"))
    with pytest.raises(UsageError, match=r"notes\.txt is no workload file"):
        workload_named(written(tmp_path, "x", "notes.txt"))


def test_the_documentation_names_every_workload_and_every_key() -> None:
    text = (Path(__file__).parents[3] / "docs" / "load.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert set(shipped_workloads()) <= named
    assert set(Workload.model_fields) - {"kind", "file_sha256"} <= named


def test_the_workload_in_the_documentation_is_one(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "load.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert workload_named(written(tmp_path, block)).prefixes == 8
