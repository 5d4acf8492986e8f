"""Carries out stages of the Dockerfile in a folder that stands for an image's root.

Paths below ``/opt/roundhouse`` and ``/home/roundhouse`` are moved into that folder, `python` and `pip` are those of an
interpreter, and what needs root (Debian's packages, a user) is left out and said.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from context import files_sent
from dockerfile import Instruction, Stage, substituted

__all__ = ["Image"]

_MOVED = ("/opt/roundhouse", "/home/roundhouse")
_NEEDS_ROOT = ("apt-get", "useradd")
_WHEEL = "wheels/*.whl"
_WITHOUT_FILES = ("USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD")


class Image:
    """One stage, being carried out.

    Args:
        stage: which.
        root: the folder that stands for its root.
        checkout: the repository; the context of the build.
        others: stages that were carried out before, by name.
        arguments: values of ``ARG``, instead of their defaults.
        borrowed: a folder of installed packages that its environment sees, instead of installing its own: what is left to be
            installed is the wheel.
    """

    def __init__(
        self,
        stage: Stage,
        root: Path,
        checkout: Path,
        others: dict[str, Image],
        arguments: dict[str, str],
        borrowed: Path | None = None,
    ) -> None:
        self.stage = stage
        self.root = root
        self.left_out: list[str] = []
        self._checkout = checkout
        self._others = others
        self._given = arguments
        self._borrowed = borrowed
        self._arguments: dict[str, str] = {}
        self.environment = _ways_out() | {"PATH": f"{_tools(root)}:{os.environ['PATH']}", "HOME": str(root), "LANG": "C.UTF-8"}
        self._folder = root

    def build(self) -> None:
        """Carry out every instruction, and say each.

        Raises:
            RuntimeError: one of them is none that this knows.
            CalledProcessError: a command failed.
        """
        for each in self.stage.instructions:
            sys.stdout.write(f"{self.stage.name}: {each.keyword} {each.text[:150]}\n")
            sys.stdout.flush()
            self._carry_out(each)

    def place(self, path: str) -> Path:
        """Where a path of the image lies."""
        return Path(self._moved(path)) if path.startswith(_MOVED) else self._folder / path

    def _carry_out(self, each: Instruction) -> None:
        if each.keyword == "RUN":
            self._run(each.text)
        elif each.keyword == "COPY":
            self._copy(each.text)
        elif each.keyword == "ARG":
            name, _, default = each.text.partition("=")
            self._arguments[name] = self._given.get(name, default.strip('"'))
        elif each.keyword == "ENV":
            for pair in each.text.split():
                name, _, value = pair.partition("=")
                self.environment[name] = self._moved(substituted(value, self.environment))
        elif each.keyword == "WORKDIR":
            self._folder = self.place(each.text)
            self._folder.mkdir(parents=True, exist_ok=True)
        elif each.keyword not in _WITHOUT_FILES:
            raise RuntimeError(f"{each.keyword} is nothing that tests/image knows how to carry out")

    def _run(self, command: str) -> None:
        if any(word in command for word in _NEEDS_ROOT):
            self.left_out.append(command)
            return
        if self._borrowed is not None:
            if command.startswith("pip install") and _WHEEL not in command:
                self.left_out.append(command)
                return
            command = command.replace("pip wheel ", "pip wheel --no-build-isolation ")  # what builds is borrowed, too
        known = self.environment | self._arguments
        subprocess.run(["sh", "-ec", self._moved(command)], cwd=self._folder, env=known, check=True)
        if self._borrowed is not None and "-m venv" in command:
            (site,) = self._folder.glob("venv/lib/python*/site-packages")
            (site / "borrowed.pth").write_text(f"{self._borrowed}\n")

    def _copy(self, text: str) -> None:
        words = shlex.split(text)
        source = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else None
        *wanted, target = words
        into = self.place(target)
        for name in wanted:
            if source is not None:
                found = self._others[source].place(name)
                _copied(found, into / found.name if target.endswith("/") or len(wanted) > 1 else into)
                continue
            files = [file for file in files_sent(self._checkout) if file == name or file.startswith(f"{name}/")]
            if not files:
                raise RuntimeError(f"COPY {name}: the context has no such file")
            for file in files:
                inside = file if target.endswith("/") else str(Path(target) / Path(file).relative_to(name))
                _copied(self._checkout / file, self._folder / inside)

    def _moved(self, text: str) -> str:
        for path in _MOVED:
            text = text.replace(path, f"{self.root}{path}")
        return text


def _copied(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)


def _ways_out() -> dict[str, str]:
    """How this machine reaches package indexes."""
    return {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.lower().endswith("_proxy")}


def _tools(root: Path) -> Path:
    """A folder with the `python` and the `pip` that an image of Python has: those of this interpreter's installation."""
    folder = root / "usr" / "bin"
    folder.mkdir(parents=True)
    for name, module in (("python", ""), ("pip", "-m pip ")):
        tool = folder / name
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module}"$@"\n')
        tool.chmod(0o755)
    return folder
