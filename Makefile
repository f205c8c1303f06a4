# Two commands: `make lab` opens the course, `make test` proves it. Each target calls attn-course or pytest.

PYTHON ?= python3 python3.13 python3.12 python3.11 python
TORCH_INDEX ?=
MODEL ?=
UV ?= $(shell command -v uv)
PYTEST_ARGS ?= -n logical --maxprocesses 4 --dist worksteal
# The workers share the cores: threads that wait for each other's turn took a quarter of the CPU time of the layers' tests.
ONE_THREAD := OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1}

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip

# Most modules that pip installs are never imported, and compiling them all takes half a minute of processor time: Python compiles each as
# it is first imported, also in a container that tells it to write no bytecode.
export PIP_NO_COMPILE := 1
unexport PYTHONDONTWRITEBYTECODE

# The language model of some lessons, once; without a network a line says so, and all else goes on.
ifeq ($(MODEL),no)
export ATTN_COURSE_MODEL := no
else
GET_MODEL = $(BIN)/attn-course model || true
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR: # a .venv that broke off is made again
.PHONY: help lab test oldest notebooks experiments format constraints clean

help: ## print this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20
	@echo
	@echo "  PYTHON=python3.12     the Python (3.11 or newer) that .venv is made with"
	@echo "  MODEL=no              leave out the language model (93 MB): its lessons then show stored answers"
	@echo "  TORCH_INDEX=URL       where pip takes torch from, to choose a CPU or a CUDA build (see docs/learners-guide.md)"

lab: $(VENV)/.runtime ## open the course in JupyterLab (installs it first)
	@$(GET_MODEL)
	@$(BIN)/attn-course lab

test: $(VENV)/.test $(VENV)/.nbgrader ## run everything CI runs
	@$(GET_MODEL)
	@$(ONE_THREAD) $(BIN)/python -m pytest $(PYTEST_ARGS)

oldest: $(VENV)/.oldest ## try the kernels under the oldest Triton that is supported (no part of `make test`)
	@PYTHONPATH=. $(VENV)/oldest/bin/python -m pytest tests/gpu -W "ignore:Conversion of an array:DeprecationWarning"

notebooks: $(VENV)/.author ## build lessons, solutions and exercises from their sources
	@$(BIN)/attn-course notebooks build

experiments: $(VENV)/.runtime ## run every experiment for three seeds and store what comes out (minutes)
	@$(BIN)/python -m attn_course.experiments

format: $(VENV)/.test ## format the code and mend what ruff can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

constraints: $(VENV)/.test ## pin what pyproject.toml asks for, write environment.yml; a pin moves only with UPGRADE="--upgrade-package NAME"
	@$(PIP) install --quiet uv
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --no-annotate $(UPGRADE) \
	    --custom-compile-command "make constraints" --output-file constraints.txt pyproject.toml
	@sed -i.before -e '/^cuda-/d' -e '/^nvidia-/d' constraints.txt && rm constraints.txt.before # torch pins these itself
	@$(BIN)/python -m tests.project.requirements # environment.yml

clean: ## remove .venv and caches, never your notebooks in work/
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps make the second run quick: pip is called only when what is installed may have changed.
$(VENV)/pyvenv.cfg:
	@for python in $(PYTHON); do \
	    "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	    "$$python" -c 'import ensurepip, venv' 2>/dev/null || { incomplete="$$python"; continue; }; \
	    echo "making $(VENV) with $$("$$python" --version)"; \
	    exec "$$python" -m venv $(VENV); \
	done; \
	if [ -n "$$incomplete" ]; then \
	    echo "error: $$incomplete lacks the modules venv or ensurepip; on Debian or Ubuntu: sudo apt install python3-venv" >&2; \
	else \
	    echo "error: Python 3.11 or newer is needed; none of these is: $(PYTHON). Name one: make lab PYTHON=python3.12" >&2; \
	fi; \
	exit 1

ALL := [author,cards,class,site,test]

# uv is quicker, and takes wheels from where pip is told to look; where it cannot reach what pip is configured to, pip does it.
LINKS = UV_FIND_LINKS="$${PIP_FIND_LINKS-$$($(PIP) config get global.find-links 2>/dev/null)}"
quick = $(or $(UV),$(OWN_UV))
get = $(if $(quick),$(LINKS) $(quick) pip install --quiet --python $(BIN)/python $(1) || )$(PIP) install $(1)

# Whoever installs more has installed what the others need.
define install
	$(if $(TORCH_INDEX),$(call get,--no-deps --index-url "$(TORCH_INDEX)" -c constraints.txt torch))
	$(call get,-c constraints.txt -e '.$(1)')
endef

$(VENV)/.runtime: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	$(call install)
	@touch $@

$(VENV)/.author: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	$(call install,[author])
	@touch $(VENV)/.runtime $@

# With pip, which unpacks and writes two gigabytes, this took a minute and a half of processor time; uv takes a few seconds.
$(VENV)/.test: OWN_UV := $(BIN)/uv
$(VENV)/.test: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	$(if $(UV),,@$(PIP) install --quiet uv || true)
	$(call install,$(ALL))
	@$(BIN)/python tests/warm.py # compiles once what every process of the tests imports
	@touch $(VENV)/.runtime $(VENV)/.author $@

# nbgrader in its own environment, which sees the course's packages behind its own.
$(VENV)/.nbgrader: $(VENV)/.test tests/nbgrader/requirements.txt
	$(BIN)/python tests/layered_environment.py $(VENV)/nbgrader -r tests/nbgrader/requirements.txt
	@touch $@

# The oldest Triton that the package supports, likewise; its interpreter stumbles over NumPy 2.4.
$(VENV)/.oldest: $(VENV)/.test
	$(BIN)/python tests/layered_environment.py $(VENV)/oldest triton==3.6.0 "numpy<2.4"
	@touch $@
