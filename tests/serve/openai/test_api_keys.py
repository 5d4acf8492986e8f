"""API keys: where they come from, who is let in, and that nothing shows them."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest
from fronts import Script, serving

from roundhouse.errors import UsageError
from roundhouse.serve.openai.api_keys import ApiKeys
from roundhouse.serve.openai.chat import ChatTemplate

KEYS = ["key-one", "key-two"]


@pytest.fixture(scope="module")
def at(hermes: ChatTemplate) -> Iterator[str]:
    with serving({"m": (hermes, Script(["ok"] * 9))}, api_keys=ApiKeys(KEYS)) as url:
        yield url


@pytest.mark.parametrize("key", KEYS)
def test_each_key_is_let_in(at: str, key: str) -> None:
    with openai.OpenAI(base_url=at, api_key=key, max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["m"]
        assert client.completions.create(model="m", prompt="hi").choices[0].text == "ok"


@pytest.mark.parametrize("key", ["key-thr", "key-", "key-one,key-two", "KEY-ONE"])
def test_other_keys_are_not(at: str, key: str) -> None:
    with openai.OpenAI(base_url=at, api_key=key, max_retries=0) as client, pytest.raises(openai.AuthenticationError) as caught:
        client.completions.create(model="m", prompt="hi")
    assert caught.value.code == "invalid_api_key"
    assert key not in str(caught.value)


@pytest.mark.parametrize("header", [None, "", "Bearer", "key-one", "Basic a2V5LW9uZQ=="])
@pytest.mark.parametrize("path", ["/models", "/completions", "/nothing"])
def test_no_key_is_a_401_that_says_how_to_send_one(at: str, header: str | None, path: str) -> None:
    headers = {} if header is None else {"authorization": header}
    response = httpx.post(f"{at}{path}", json={"model": "m", "prompt": "hi"}, headers=headers, trust_env=False)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.headers["x-request-id"]
    assert response.json()["error"]["type"] == "authentication_error"


def test_health_is_open(at: str) -> None:
    root = at.removesuffix("/v1")
    for path in ("/healthz", "/readyz"):
        assert httpx.get(f"{root}{path}", trust_env=False).status_code == 200


def test_without_keys_everybody_is_let_in(base_url: str, script: Script) -> None:
    assert httpx.get(f"{base_url}/models", trust_env=False).status_code == 200


def test_keys_come_from_the_environment_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# ours\nin-file\n\n  other  \n")
    alone = ApiKeys.from_environment({"ROUNDHOUSE_API_KEY": "alone"})
    both = ApiKeys.from_environment({"ROUNDHOUSE_API_KEY": "alone", "ROUNDHOUSE_API_KEYS_FILE": str(file)})
    assert alone is not None
    assert both is not None
    assert [alone.allow(key) for key in (b"alone", b"in-file")] == [True, False]
    assert [both.allow(key) for key in (b"alone", b"in-file", b"other", b"# ours", b"")] == [True, True, True, False, False]
    assert ApiKeys.from_environment({}) is None
    assert ApiKeys.from_environment({"ROUNDHOUSE_API_KEY": "", "ROUNDHOUSE_API_KEYS_FILE": ""}) is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"# nothing\n", "there is no API key"),
        (b"\xff\xfe\xfa", "it is not text"),
        (b"two words", "visible ASCII"),
    ],
)
def test_a_file_without_usable_keys_lets_nobody_in_by_mistake(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        ApiKeys.from_environment({"ROUNDHOUSE_API_KEYS_FILE": str(file)})


def test_nothing_shows_a_key() -> None:
    keys = ApiKeys(KEYS)
    assert "key-one" not in f"{keys!r} {vars(keys)!r}"
    with pytest.raises(UsageError) as caught:
        ApiKeys(["the secret one"])
    assert "secret" not in "".join(traceback.format_exception_only(caught.value))
