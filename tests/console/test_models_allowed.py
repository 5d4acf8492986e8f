"""Nobody who may build may read any file of the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from roundhouse.build.home import Home
from roundhouse.build.recipe import recipe_from
from roundhouse.console.models_allowed import AllowedModels
from roundhouse.errors import UsageError


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    (folder / "llama").mkdir(parents=True)
    (folder / "llama" / "config.json").write_text("{}")
    (folder / "small.gguf").touch()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").touch()
    return folder


@pytest.fixture
def allowed(models: Path, tmp_path: Path) -> AllowedModels:
    return AllowedModels([models], Home(tmp_path / "home"))


@pytest.mark.parametrize("source", ["demo:smollm2", "shape:llama-3.1-8b", "org/name", "Qwen/Qwen2.5-0.5B"])
def test_what_is_public_may_be_read(allowed: AllowedModels, source: str) -> None:
    allowed.require(source)


@pytest.mark.parametrize("name", ["llama", "small.gguf", "llama/../llama", "not there yet"])
def test_what_lies_in_the_folder_may_be_read(allowed: AllowedModels, models: Path, name: str) -> None:
    allowed.require(f"{models}/{name}")


@pytest.mark.parametrize(
    "source", ["{0}/../secret", "{0}/../secret/key", "/etc", "/", "~", "~root", "~nobody-is-called-so/x", "llama", "..", "a\0b"]
)
def test_nothing_else_may(allowed: AllowedModels, models: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(models)
    with pytest.raises(UsageError, match="is not in a folder that may be read here: "):
        allowed.require(source.format(models))


def test_whether_something_is_there_is_not_told(allowed: AllowedModels, tmp_path: Path) -> None:
    told = []
    for name in ("key", "lock"):
        with pytest.raises(UsageError) as caught:
            allowed.require(f"{tmp_path}/secret/{name}")
        told.append(str(caught.value).replace(name, "…"))
    assert told[0] == told[1]


def test_symlinks_count_as_what_they_lead_to(allowed: AllowedModels, models: Path, tmp_path: Path) -> None:
    (models / "alias").symlink_to(models / "llama")
    allowed.require(str(models / "alias"))
    (models / "out").symlink_to(tmp_path / "secret")
    (models / "around").symlink_to(models / "around")
    for name in ("out", "out/key", "around"):
        with pytest.raises(UsageError):
            allowed.require(str(models / name))
    (models / "llama" / "deep").mkdir()
    (models / "llama" / "deep" / "tokenizer.json").symlink_to(models / "llama" / "config.json")
    allowed.require(str(models / "llama"))
    (models / "llama" / "deep" / "weights").symlink_to(tmp_path / "secret" / "key")
    with pytest.raises(UsageError):
        allowed.require(str(models / "llama"))


def test_a_local_folder_that_looks_like_a_hub_id_is_local(
    allowed: AllowedModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    allowed.require("secret/lock")
    with pytest.raises(UsageError):
        allowed.require("secret/key")


def test_by_default_models_of_the_home_may_be_read(tmp_path: Path) -> None:
    allowed = AllowedModels([], Home(tmp_path))
    allowed.require(str(tmp_path / "models" / "any"))
    with pytest.raises(UsageError, match="--models FOLDER"):
        allowed.require(str(tmp_path / "engines"))


def test_calibration_texts_are_models_in_this(allowed: AllowedModels, models: Path, tmp_path: Path) -> None:
    recipe = {"model": "demo:smollm2", "calibration": {"text": str(models / "text.txt")}}
    allowed.require_recipe(recipe_from(recipe))
    recipe["calibration"] = {"text": "/etc/passwd"}
    with pytest.raises(UsageError, match="the calibration text /etc/passwd"):
        allowed.require_recipe(recipe_from(recipe))
