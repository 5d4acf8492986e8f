"""The page check in TensorRT-LLM's own Python finds what it imports there, and knows what it is told."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from dockerfile import read_dockerfile

from roundhouse.serve.trtllm_guard.settings import settings_from

ROOT = Path(__file__).parents[2]
GPU = read_dockerfile(ROOT / "Dockerfile")[1]["gpu"]
OF_TENSORRT_LLM = {"numpy", "packaging", "pydantic", "pydantic_core", "pyyaml", "setuptools", "torch"}
"""Distributions that TensorRT-LLM needs itself."""
OF_PYDANTIC = {"annotated-types", "typing-inspection", "typing_extensions"}


def test_variables_of_the_image_are_its_own() -> None:
    environment = GPU.values("ENV")
    library = settings_from(environment).library
    assert library is not None
    assert any(f"{library} " in text and text.endswith("plugin/") for text in GPU.texts("COPY"))


def test_what_it_imports_and_the_container_lacks_lies_beside_the_package() -> None:
    room = ROOT / "serve" / "trtllm_guard"
    upstream = re.compile(r"^(from|import) (tensorrt_llm|mpi4py)", re.MULTILINE)
    upstreams = {path.stem for path in room.glob("*.py") if upstream.search(path.read_text())}
    modules = sorted(path.stem for path in room.glob("*.py") if path.stem not in upstreams)
    code = f"import sys, importlib; [importlib.import_module(f'roundhouse.serve.trtllm_guard.{{m}}') for m in {modules}]; "
    code += "print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout.split()
    distributions = packages_distributions()
    needed = {of.lower() for name in loaded for of in distributions.get(name, ())}
    beside = re.findall(r'python3 -c "import (\w+)" \|\|', " ".join(GPU.texts("RUN")))
    assert needed - OF_TENSORRT_LLM - OF_PYDANTIC - {"roundhouse-llm"} <= set(beside)
