"""How engines are served in containers: by which image, with which command, and what they take."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from command_words import parse
from dockerfile import read_dockerfile
from exported_engines import exported

from roundhouse.build.engine import Engine
from roundhouse.errors import UsageError
from roundhouse.serve.export.choosing import Server, container_of
from roundhouse.serve.export.compose import compose_text, service_name
from roundhouse.serve.export.container import GPU_IMAGE, HOME, IMAGE, PROBE, Asked, EngineContainer
from roundhouse.serve.export.kubernetes import Manifests, resource_name
from roundhouse.serve.export.triton import export_triton
from roundhouse.serve.settings import Overrides
from roundhouse.serve.trtllm_arguments import LlmPlace

_, STAGES = read_dockerfile(Path(__file__).parents[3] / "Dockerfile")


@pytest.fixture
def torch_engine(tmp_path: Path) -> Engine:
    return exported("smollm2", tmp_path)


@pytest.fixture
def tensorrt_engine(tmp_path: Path) -> Engine:
    return exported("Llama-3.1-70B", tmp_path)


def compose(container: EngineContainer, folder: str = "/srv/engine") -> Any:
    return yaml.safe_load(compose_text(container, Path(folder)))


def deployment(manifests: Manifests) -> Any:
    (found,) = [each for each in manifests.documents() if each["kind"] == "Deployment"]
    return found["spec"]["template"]["spec"]


@pytest.mark.parametrize(("name", "image"), [("smollm2", IMAGE), ("Llama-3.1-70B", GPU_IMAGE)])
def test_the_command_is_one_of_ours_in_an_image_that_has_it(name: str, image: str, tmp_path: Path) -> None:
    engine = exported(name, tmp_path)
    container = container_of(engine)
    stage = STAGES[image.partition(":")[2]]
    assert container.image == image
    assert stage.values("ENV")["ROUNDHOUSE_HOME"] == HOME
    assert {int(port) for port in stage.texts("EXPOSE")[0].split()} >= set(container.ports.values())
    if container.entrypoint:
        assert container.entrypoint[0] in stage.texts("ENTRYPOINT")[0]
        folder = Path(container.entrypoint[1]).parents[1]
        assert f"{folder.name}/bin/pip install --no-cache-dir --no-deps wheels/*.whl" in " ".join(stage.texts("RUN"))
        assert stage.texts("WORKDIR") == [str(folder.parent)]
    words = parse(container.arguments)
    assert words["engines"] == [engine.manifest.id]
    assert {name: words[name] for name in container.ports} == dict(container.ports)
    assert words["host"] == "0.0.0.0"


def test_a_cpu_is_told_how_many_pages_its_memory_has_room_for(torch_engine: Engine) -> None:
    container = container_of(torch_engine)
    plan = torch_engine.manifest.plan
    kv_bytes = parse(container.arguments)["kv_cache_bytes"]
    assert kv_bytes == plan.kv_bytes
    assert container.need.memory_bytes >= plan.weight_bytes_per_gpu + kv_bytes
    resources = deployment(Manifests(container, "a"))["containers"][0]["resources"]
    assert resources["requests"]["memory"] == resources["limits"]["memory"]
    assert int(resources["limits"]["memory"].removesuffix("Gi")) * 2**30 >= container.need.memory_bytes


@pytest.mark.parametrize("name", ["smollm2", "Llama-3.1-70B", "qwen3-30b-a3b"])
def test_a_cache_that_the_planned_machine_has_no_room_for_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"from kv_cache_bytes\) exceed the [\d,]+ B of free memory"):
        container_of(exported(name, tmp_path), overrides=Overrides(kv_cache_bytes=10**15))


def _as_container(engine: Engine, folder: Path, overrides: Overrides) -> None:
    container_of(engine, overrides=overrides)


def _as_repository(engine: Engine, folder: Path, overrides: Overrides) -> None:
    export_triton(engine, folder, LlmPlace(engine=PurePosixPath("/engine")), overrides=overrides)


@pytest.mark.parametrize("export", [_as_container, _as_repository])
@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"max_batch_size": 100_000}, "max_batch_size 100,000 is above its"),
        ({"max_num_tokens": 1_000_000}, "max_num_tokens 1,000,000 is above its"),
        ({"guard": "tags+content"}, "they lie on 4 GPUs; use tags"),
    ],
)
def test_what_the_engine_was_not_compiled_for_is_refused_as_serving_does(
    tensorrt_engine: Engine, tmp_path: Path, export: Callable[..., None], asked: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        export(tensorrt_engine, tmp_path / "models", Overrides(**asked))
    assert not (tmp_path / "models").exists()


def test_gpus_are_asked_for_and_are_those_that_it_was_compiled_for(torch_engine: Engine, tensorrt_engine: Engine) -> None:
    container = container_of(tensorrt_engine)
    pod = deployment(Manifests(container, "a"))
    assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    assert pod["nodeSelector"] == {"nvidia.com/gpu.compute.major": "9", "nvidia.com/gpu.compute.minor": "0"}
    device = compose(container)["services"]["engine"]["deploy"]["resources"]["reservations"]["devices"][0]
    assert device["count"] == 4
    assert "nodeSelector" not in deployment(Manifests(container_of(torch_engine), "a"))


def test_more_gpus_than_a_machine_has_are_refused(tensorrt_engine: Engine) -> None:
    assert container_of(tensorrt_engine, gpus_per_node=4).need.gpus == 4
    with pytest.raises(UsageError, match="takes 4 GPUs, and a machine has 2"):
        container_of(tensorrt_engine, gpus_per_node=2)


def test_probes_ask_ports_that_the_container_has(torch_engine: Engine) -> None:
    two = dataclasses.replace(
        container_of(torch_engine),
        ports={"http": 8000, "guard": 8003},
        live=Asked("http", "/v2/health/live"),
        metrics=("guard",),
    )
    two = dataclasses.replace(two, ready=(Asked("http", "/v2/health/ready"), Asked("guard", "/ready")))
    server = deployment(Manifests(two, "a"))["containers"][0]
    probe = server["readinessProbe"]["exec"]["command"]
    assert tuple(probe[:4]) == PROBE
    assert probe[4:] == ["http://127.0.0.1:8000/v2/health/ready", "http://127.0.0.1:8003/ready"]
    assert server["startupProbe"]["exec"]["command"] == probe
    assert server["livenessProbe"]["httpGet"] == {"port": "http", "path": "/v2/health/live"}
    assert compose(two)["services"]["engine"]["healthcheck"]["test"] == ["CMD", *probe]
    services = {each["metadata"]["name"]: each for each in Manifests(two, "a").documents() if each["kind"] == "Service"}
    assert [port["name"] for port in services["a"]["spec"]["ports"]] == ["http"]
    assert services["a-guard"]["metadata"]["annotations"]["prometheus.io/port"] == "8003"


@pytest.mark.parametrize("server", ["triton", "trtllm-serve"])
def test_tensorrt_llms_own_servers_are_ready_when_the_page_check_is_alive(tmp_path: Path, server: Server) -> None:
    engine = exported("qwen3-30b-a3b", tmp_path)
    guarded, unguarded = (container_of(engine, server=server, overrides=Overrides(guard=guard)) for guard in (None, "off"))
    assert [asked.port for asked in guarded.ready] == [guarded.live.port, "guard"]
    assert "guard" in guarded.metrics
    assert [asked.port for asked in unguarded.ready] == [unguarded.live.port]
    assert "guard" not in (*unguarded.ports, *unguarded.metrics)
    (arguments,) = [yaml.safe_load(text) for path, text in guarded.files.items() if path.endswith(".yaml")]
    (plain,) = [yaml.safe_load(text) for path, text in unguarded.files.items() if path.endswith(".yaml")]
    told = arguments["env_overrides"]
    assert told["ROUNDHOUSE_GUARD_METRICS"].endswith(f":{guarded.ports['guard']}")
    assert told["ROUNDHOUSE_GUARD_HOME"] == HOME
    library = Path(told["ROUNDHOUSE_GUARD_LIBRARY"])
    assert any(str(library) in text and text.endswith(f"{library.parent.name}/") for text in STAGES["gpu"].texts("COPY"))
    assert "env_overrides" not in plain
    assert f"--target {Path(guarded.environment['PYTHONPATH']).name} " in " ".join(STAGES["gpu"].texts("RUN"))
    assert not guarded.keyed


def test_where_tensorrt_llms_server_finds_its_files(tmp_path: Path) -> None:
    engine = exported("qwen3-30b-a3b", tmp_path)
    triton, own = container_of(engine), container_of(engine, server="trtllm-serve")
    (option,) = triton.arguments
    assert {path.rsplit("/", 1)[0] for path in triton.files} == {
        f"{option.partition('=')[2]}/qwen3-30b-a3b{version}" for version in ("", "/1")
    }
    assert own.arguments[own.arguments.index("--config") + 1] in own.files
    assert own.arguments[0] == f"{own.engine_folder}/checkpoint"
    assert int(own.arguments[own.arguments.index("--port") + 1]) == own.ports["openai"]


def test_engines_of_other_targets_are_nothing_for_trtllm_serve(torch_engine: Engine, tensorrt_engine: Engine) -> None:
    for engine in (torch_engine, tensorrt_engine):
        with pytest.raises(UsageError, match="which trtllm-serve does not serve"):
            container_of(engine, server="trtllm-serve")


def test_what_is_asked_for_is_what_serves(torch_engine: Engine, tensorrt_engine: Engine, tmp_path: Path) -> None:
    asked = Overrides(guard="off", max_batch_size=4, prefix_reuse=False, max_waiting=7)
    for engine in (torch_engine, tensorrt_engine):
        words = parse(container_of(engine, overrides=asked).arguments)
        assert {key: words[key] for key in asked.model_fields_set} == asked.model_dump(include=asked.model_fields_set)
    assert parse(container_of(tensorrt_engine).arguments)["guard"] is None
    with pytest.raises(UsageError, match="--kernels is for measuring"):
        container_of(torch_engine, overrides=Overrides(kernels="torch"))
    engine = exported("qwen3-30b-a3b", tmp_path)
    files = container_of(engine, overrides=Overrides(max_batch_size=4)).files
    assert "max_batch_size: 4\n" in next(text for path, text in files.items() if path.endswith("model.yaml"))


def test_a_smaller_batch_takes_less_memory(torch_engine: Engine) -> None:
    small, large = (container_of(torch_engine, overrides=Overrides(max_batch_size=size)) for size in (1, 16))
    saved = [parse(each.arguments)["kv_cache_bytes"] for each in (large, small)]
    assert large.need.memory_bytes - small.need.memory_bytes == saved[0] - saved[1] > 0
    tokens = container_of(torch_engine, overrides=Overrides(kv_cache_tokens=1024))
    assert "--kv-cache-tokens" not in tokens.arguments
    assert parse(tokens.arguments)["kv_cache_bytes"] == 1024 * torch_engine.manifest.plan.kv_bytes_per_token


def test_files_are_found_where_the_container_looks_for_them(torch_engine: Engine) -> None:
    files = {"/models/llm/config.pbtxt": 'name: "llm"\n', "/models/llm/1/model.yaml": "cost: 5$\n"}
    container = dataclasses.replace(container_of(torch_engine), files=files)
    written = compose(container)
    texts = {each["target"]: written["configs"][each["source"]]["content"] for each in written["services"]["engine"]["configs"]}
    assert texts == {path: text.replace("$", "$$") for path, text in files.items()}  # as Compose writes a dollar sign
    documents = Manifests(container, "a").documents()
    (data,) = [each["data"] for each in documents if each["metadata"]["name"] == "a-files"]
    mounts = deployment(Manifests(container, "a"))["containers"][0]["volumeMounts"]
    assert {each["mountPath"]: data[each["subPath"]] for each in mounts if each["name"] == "files"} == files


def test_a_folder_with_a_dollar_sign_is_found(torch_engine: Engine) -> None:
    volume = compose(container_of(torch_engine), "/srv/a $HOME/e")["services"]["engine"]["volumes"][1]
    assert volume["source"] == "/srv/a $$HOME/e"
    assert volume["target"] == f"{HOME}/engines/{torch_engine.manifest.id}"
    assert volume["read_only"]


def test_an_existing_claim_is_taken_and_none_is_made(torch_engine: Engine) -> None:
    manifests = Manifests(container_of(torch_engine), "a", namespace="models", claim="shared")
    kinds = [each["kind"] for each in manifests.documents()]
    assert "PersistentVolumeClaim" not in kinds
    assert {each["metadata"]["namespace"] for each in manifests.documents()} == {"models"}
    assert deployment(manifests)["volumes"][0]["persistentVolumeClaim"]["claimName"] == "shared"
    assert "--namespace models" in manifests.text(Path("/srv/engine"))


def test_names_become_what_others_take(torch_engine: Engine) -> None:
    assert resource_name("Llama-3.1_70B") == "llama-3-1-70b"
    assert resource_name("3b") == "engine-3b"
    assert len(resource_name("a" * 100)) == 48
    assert service_name("Llama-3.1_70B") == "llama-3-1_70b"
    for wrong in ("Big", "3b", "a_b", "a-", "a" * 49, ""):
        with pytest.raises(UsageError, match="takes no name like"):
            Manifests(container_of(torch_engine), wrong)
    with pytest.raises(UsageError, match="takes no name like 'My Claim'"):
        Manifests(container_of(torch_engine), "a", claim="My Claim")
