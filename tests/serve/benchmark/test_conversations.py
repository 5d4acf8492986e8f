"""Conversation files: their forms, and what is said about wrong ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.errors import UsageError
from roundhouse.serve.benchmark.conversations import Conversation, content_hash, read_conversations


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "talks.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_all_forms_say_the_same(tmp_path: Path) -> None:
    lines = [
        {"messages": [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Yes."}]},
        {"conversations": [{"from": "human", "value": "Hello?"}, {"from": "gpt", "value": "Yes."}], "id": 7},
        {"prompt": "Hello?"},
    ]
    expected = [Conversation(("Hello?",))] * 3
    assert read_conversations(written(tmp_path, "\n\n".join(json.dumps(line) for line in lines))) == expected
    assert read_conversations(written(tmp_path, json.dumps(lines, indent=2))) == expected


def test_turns_keep_their_order_and_a_system_prompt_its_place(tmp_path: Path) -> None:
    roles = [("system", "Be brief."), ("user", "One?"), ("assistant", "1"), ("tool", ""), ("user", "Two?")]
    line = json.dumps({"messages": [{"role": role, "content": content} for role, content in roles]})
    assert read_conversations(written(tmp_path, line)) == [Conversation(("One?", "Two?"), "Be brief.")]


def test_unusual_characters_are_no_line_ends(tmp_path: Path) -> None:
    said = "first\u2028second\u0085third"
    line = json.dumps({"prompt": said}, ensure_ascii=False)
    assert read_conversations(written(tmp_path, f"\ufeff{line}\r\n{line}")) == [Conversation((said,))] * 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no conversation"),
        ("[]", "holds no conversation"),
        ('{"prompt": "a"}\n{', "line 2: not JSON"),
        ("[1", "is not JSON"),
        ("3", "line 1: it is no JSON object"),
        ('[{"prompt": "a"}, 3]', "entry 2: it is no JSON object"),
        ('{"text": "a"}', "it has no `messages`, `conversations` or `prompt`, but text"),
        ('{"messages": "a"}', "its messages are no list"),
        ('{"messages": ["a"]}', "a message is no JSON object"),
        ('{"messages": [{"role": "assistant", "content": "a"}]}', "no user says anything"),
        ('{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}', "what user says is no text"),
        ('{"messages": [{"role": ["user"], "content": "a"}]}', "a message has no `role`"),
        ('{"messages": [{"content": "a"}]}', "a message has no `role`"),
        ('{"prompt": " "}', "what user says is no text"),
        ('{"messages": [{"role": "wizard", "content": "a"}]}', "a message of 'wizard' cannot stand there"),
        (
            '{"messages": [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]}',
            "a message of 'system' cannot stand there",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError, match=says) as caught:
        read_conversations(path)
    assert str(path) in caught.value.message


def test_a_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, '{"prompt": "a"}')
    before = content_hash(path)
    assert read_conversations(path, expected_sha256=before)
    written(tmp_path, '{"prompt": "b"}')
    with pytest.raises(UsageError, match="has changed since the workload was made"):
        read_conversations(path, expected_sha256=before)


def test_a_missing_file_and_one_of_other_bytes_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_conversations(tmp_path / "nothing.jsonl")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"binary\.jsonl cannot be read"):
        read_conversations(tmp_path / "binary.jsonl")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["messages", "conversations", "prompt", "role", "from", "content", "value", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(JSON)
def test_whatever_a_line_holds_is_a_conversation_or_an_error_in_words(
    tmp_path_factory: pytest.TempPathFactory, content: object
) -> None:
    path = written(tmp_path_factory.mktemp("any"), json.dumps(content))
    try:
        conversations = read_conversations(path)
    except UsageError:
        return
    assert all(each.says for each in conversations)
