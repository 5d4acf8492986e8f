from __future__ import annotations

from pathlib import Path

import pytest
from exported_engines import exported

from roundhouse.errors import UsageError
from roundhouse.serve.export.choosing import container_of
from roundhouse.serve.export.container import GPU_IMAGE, IMAGE
from roundhouse.serve.export.image import require_image


@pytest.mark.parametrize(
    "name",
    [
        IMAGE,
        GPU_IMAGE,
        "roundhouse",
        "localhost:5000/a/b",
        "nvcr.io/nvidia/tritonserver:25.12-trtllm-python-py3",
        "[::1]:5000/a",
        "a_b/c.d--e__f:Tag_1.0",
        "registry/ours:1@sha256:" + "0" * 64,
    ],
)
def test_names_of_images_are_taken(name: str) -> None:
    require_image(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a b",
        "a:",
        ":1",
        "a/",
        "/a",
        "A",
        "registry/Ours",
        "${REGISTRY}/a",
        "a:b:c",
        "a@sha256:12",
        "a\n",
        "a:" + "t" * 129,
    ],
)
def test_what_names_no_image_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"--image .* names no image"):
        require_image(name)


def test_an_engine_is_served_by_an_image() -> None:
    engine = exported("smollm2", Path("/srv/roundhouse/engines"))
    for name in ("", "a b"):
        with pytest.raises(UsageError, match="names no image"):
            container_of(engine, image=name)
