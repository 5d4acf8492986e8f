"""A model whose tokenizer has neither a chat template nor a padding token: it completes, and all say that it cannot chat."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
from driving import request, serve, settings, text
from fronts import Script, serving

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.build.pipeline import build
from roundhouse.build.recipe import recipe_from
from roundhouse.serve.openai.chat import load_chat_template
from roundhouse.serve.runtimes import create_loop


@pytest.fixture(scope="module")
def engine(tiny_model: Any, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    folder = Path(shutil.copytree(tiny_model("llama"), tmp_path_factory.mktemp("no chat") / "model"))
    (folder / "chat_template.jinja").unlink()
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({key: config[key] for key in config if key != "pad_token"}))
    recipe = recipe_from({"model": str(folder), "weights": "bf16", "kv_cache": "bf16", "max_seq_len": 128})
    return build(recipe, Home(folder.parent / "home"), lambda event: None).engine


def test_the_engine_remembers_and_the_front_says_so(engine: Engine) -> None:
    assert engine.manifest.chat is False
    assert load_chat_template(engine.checkpoint, chat=True).supported is False
    template, script = load_chat_template(engine.checkpoint, chat=engine.manifest.chat), Script(["ok"])
    with serving({"m": (template, script)}) as url, httpx.Client(base_url=url, trust_env=False) as http:
        assert http.get(url.removesuffix("/v1") + "/readyz").json() == {"status": "ready", "chat": False}
        assert http.get("/models/m").json()["chat"] is False
        refused = http.post("/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": "hi"}]})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "chat_not_supported")
        assert "/v1/completions works" in refused.json()["error"]["message"]
        assert http.post("/completions", json={"model": "m", "prompt": "hi"}).json()["choices"][0]["text"] == "ok"


def test_prompts_of_any_lengths_run_together_without_a_token_to_fill_up_with(engine: Engine) -> None:
    assert '"pad_token"' not in (engine.checkpoint / "tokenizer_config.json").read_text()
    loop = create_loop(engine, settings(precision="reference", max_num_tokens=16))
    asked = [request(str(length), "engine " * length, max_tokens=6) for length in (1, 5, 20)]
    together = serve(loop, *asked)
    for each in asked:
        assert text(together[each.request_id]) == text(serve(loop, each)[each.request_id]) != ""
