"""What is exported is its golden files, and keeps to the schemas of those who read it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from exported_engines import GOLDEN, golden_texts

COMPOSE, KUBERNETES = (sorted(GOLDEN.glob(f"*.{kind}.yaml")) for kind in ("compose", "kubernetes"))


def called(path: Path) -> str:
    return path.name


def test_exports_are_their_golden_files(tmp_path: Path) -> None:
    assert {path: path.read_text() for path in GOLDEN.iterdir()} == golden_texts(tmp_path)


def test_compose_files_keep_to_the_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", *map(str, COMPOSE)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("version", ["1.31", "1.37"])
@pytest.mark.parametrize("path", KUBERNETES, ids=called)
def test_manifests_keep_to_kubernetes_own_schemas(path: Path, version: str) -> None:
    import kubernetes_validate

    documents = list(yaml.safe_load_all(path.read_text()))
    assert {"PersistentVolumeClaim", "Deployment", "Service", "ConfigMap"} == {each["kind"] for each in documents}
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)


def test_a_schema_that_is_kept_to_is_one_that_can_be_broken() -> None:
    import kubernetes_validate

    (path, *_) = KUBERNETES
    deployment = next(each for each in yaml.safe_load_all(path.read_text()) if each["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["redinessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="redinessProbe"):
        kubernetes_validate.validate(deployment, "1.37", strict=True)
