"""Engines for TensorRT-LLM's PyTorch backend without a GPU: a torch engine's checkpoint, with arguments written for it.

Run it to write the golden files of `llmapi` models anew.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from trtllm_recipes import GOLDEN, LLM_RECIPES, llm_plan

from roundhouse.build.compiled import Compilation
from roundhouse.build.engine import CHECKPOINT, Engine, write_manifest
from roundhouse.build.events import Reporter
from roundhouse.build.models.sources import read_model
from roundhouse.build.planner.gpus import hardware_called
from roundhouse.build.planner.plan import make_plan
from roundhouse.build.recipe import recipe_from
from roundhouse.build.trtllm.llm_arguments import llm_arguments
from roundhouse.build.trtllm.llm_engine import compile_llm
from roundhouse.serve.triton.llmapi import llmapi_config_text, model_yaml
from roundhouse.serve.trtllm_arguments import LlmPlace, placed_arguments

__all__ = ["golden_llmapi_texts", "llm_engine"]

_PLACE = LlmPlace(
    PurePosixPath("/models/0123456789abcdef"),
    home=PurePosixPath("/home/roundhouse/data"),
    library=PurePosixPath("/opt/roundhouse/plugin/libroundhouse_page_guard_cuda.so"),
)


def llm_engine(engine: Engine, folder: Path, *, gpu: str = "l40s", **keys: Any) -> Engine:
    """The engine that a torch engine's recipe would make for `trtllm-pytorch` on a GPU, in a new folder.

    Args:
        engine: of the torch target; its checkpoint is copied.
        folder: of the new engine.
        gpu: that it is planned for.
        keys: of the recipe, to change.
    """
    kept = engine.manifest.recipe.model_dump(exclude_unset=True)
    recipe = recipe_from({**kept, "target": "trtllm-pytorch", "page_tokens": 32, **keys})
    model = read_model(Path(recipe.model))
    plan = make_plan(recipe, model.shape, model.inventory, hardware_called(gpu))
    shutil.copytree(engine.checkpoint, folder / CHECKPOINT)
    report = Reporter(lambda event: None)
    with report.stage("compile", "") as stage:
        compiled = compile_llm(Compilation(plan, folder, stage, report))
    manifest = engine.manifest.model_copy(update={"recipe": plan.recipe, "plan": plan, "compiled": compiled})
    write_manifest(folder, manifest)
    return Engine(folder, manifest)


def golden_llmapi_texts() -> dict[Path, str]:
    """Every golden file of `llmapi` models, as it should be: each recipe's arguments, and one configuration."""
    texts = {GOLDEN / "llmapi.pbtxt": llmapi_config_text("an-engine")}
    for name in LLM_RECIPES:
        plan = llm_plan(name)
        arguments = placed_arguments(llm_arguments(plan), _PLACE.engine.name, _PLACE, plan.recipe.guard)
        about = f"Engine {_PLACE.engine.name}, guard {plan.recipe.guard}."
        texts[GOLDEN / f"llmapi-{name}.yaml"] = model_yaml(arguments, about=about)
    return texts


if __name__ == "__main__":
    for path, text in golden_llmapi_texts().items():
        path.write_text(text)
        sys.stdout.write(f"{path}\n")
