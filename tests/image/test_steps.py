"""The steps of the stage `cpu`, carried out in a folder, with the packages of this environment; `make image` has its own."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest
from dockerfile import Instruction, Stage, read_dockerfile
from image_steps import Image
from trying import try_image

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
def test_the_steps_make_an_installation_that_works(tmp_path: Path) -> None:
    _, stages = read_dockerfile(CHECKOUT / "Dockerfile")
    made: dict[str, Image] = {}
    for name in ("source", "cpu"):
        borrowed = Path(sysconfig.get_path("purelib"))
        made[name] = Image(stages[name], tmp_path / "image" / name, CHECKOUT, dict(made), {}, borrowed)
        made[name].build()
    try_image(made["cpu"])
    assert [command.split()[0] for command in made["cpu"].left_out] == ["apt-get", "pip", "pip"]


def test_a_step_that_fails_and_one_that_is_not_known_are_told(tmp_path: Path) -> None:
    def image(keyword: str, text: str) -> Image:
        return Image(Stage("a", "scratch", (Instruction(keyword, text),)), tmp_path / keyword, CHECKOUT, {}, {})

    with pytest.raises(Exception, match="returned non-zero exit status 3"):
        image("RUN", "exit 3").build()
    with pytest.raises(RuntimeError, match="ONBUILD is nothing"):
        image("ONBUILD", "RUN true").build()
    with pytest.raises(RuntimeError, match=r"COPY nothing\.txt: the context has no such file"):
        image("COPY", "nothing.txt .").build()
