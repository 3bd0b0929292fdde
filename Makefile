# Two commands: `make demo` answers questions about videos, `make test` proves it still does; `make test-sglang` does
# so for the other engine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test quick test-sglang lint docs clean

# Stamps, so that the second `make demo` costs no pip run.
$(VENV)/.installed-cpu: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing vidpipe with vLLM's CPU build: some minutes"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cpu]'
	touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/.installed-cpu
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cpu,dev]'
# Without its pins on numpy and opencv, which vLLM's contradict; one test runs the real program.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps codec-video-prep==0.2.5
	touch $@

demo: $(VENV)/.installed-cpu
	$(BIN)/vidpipe run recipes/demo.yaml
	$(BIN)/vidpipe report runs/demo

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --explicit-package-bases tests/perf tests/gpu
	$(BIN)/lint-imports --no-cache

docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# The tests of the rules: no engine is started.
quick: lint
	$(BIN)/python -m pytest -n 2 -m "not engine and not upstream" $(addprefix tests/, \
	    benchmarks manifest models parity plan pruning recipe) --ignore tests/benchmarks/test_walkthrough.py

# Two files at a time: most tests use one core, and an engine of theirs takes 2 GiB.
test: lint docs
	$(BIN)/python -m pytest -n 2 --dist loadfile

# SGLang's Python beside the CPU build of torch that is here, and the three small packages that it imports besides. A
# whole `pip install sglang` is a CUDA build of several gigabytes that would push vLLM's torch out.
SGLANG := $(VENV)/sglang
$(SGLANG)/.installed: Makefile $(VENV)/.installed-dev
	rm -rf $(SGLANG)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --target $(SGLANG) \
	    sglang==0.5.23 gguf ipython traitlets
	touch $@

test-sglang: $(SGLANG)/.installed
	PYTHONPATH=$(abspath .):$(abspath $(SGLANG)) $(BIN)/python -m pytest -m sglang tests/engine

clean:
	rm -rf $(VENV) build runs
