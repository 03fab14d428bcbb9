# Two commands do everything on a fresh machine: `make up` runs sitemapd, `make test` tests it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO ?= demo
HTTP ?= 127.0.0.1:8080

# Much of a test is waiting: four at once keep two cores busy. Each takes up to 300 MB, what
# its tests start not counted.
TESTERS ?= 4

# Processes are started by the hundred: where nothing is kept compiled, each compiles all it loads.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: up test test-cms test-scale install lint bench simulate faults fuzz lock wordpress-plugin wheel image clean

up: install  ## run everything on this machine, with a demo site in ./demo
	@$(BIN)/sitemapd up --home $(DEMO) --http $(HTTP)

test: $(VENV)/.test  ## all tests, on real servers and real files; ARGS="-n0 tests/unit" for a part
	$(BIN)/python -m pytest -n $(TESTERS) --dist loadfile --no-loadscope-reorder $(ARGS)

test-cms: $(VENV)/.test  ## against real Ghost, Strapi, Wagtail, Directus, Payload and packages of vendors, which it installs; ARGS="-m cms_ghost"
	$(BIN)/python -m pytest -m "cms_ghost or cms_strapi or cms_wagtail or cms_directus or cms_payload or cms_cloudevents or cms_vendors" tests/system/cms $(ARGS)

test-scale: $(VENV)/.test  ## many machines, on loopback: every set-up of stores, brokers and targets, masters killed under load, what is lost counted
	@command -v rabbitmqctl >/dev/null || apt-get install -y --no-install-recommends rabbitmq-server
	@command -v redis-server >/dev/null || apt-get install -y --no-install-recommends redis-server
	CI_ALL=1 $(BIN)/python -m pytest -m "scale or not scale" tests/scale \
	  tests/integration/publishing/test_targets.py tests/integration/publishing/test_followers.py $(ARGS)

install: $(VENV)/.installed  ## the environment: .venv/bin/sitemapd exists afterwards

lint: $(VENV)/.lint  ## style, types, the house's import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive shared webhook worker deploy

bench: $(VENV)/.test  ## figures as ratios in one run, printed and written to bench-results.json; ARGS="latency idle" for a part
	$(BIN)/python -m tests.bench $(ARGS)

simulate: $(VENV)/.test  ## a larger installation, simulated by measured costs: what breaks first, what it costs; ARGS="--sites 500 --urls 50e6 --events 5000 --workers 4"
	$(BIN)/python -m tests.bench.simulate $(ARGS)

faults: $(VENV)/.faults  ## break everything, count what is lost; as root. ARGS: --short --seed N, F7 ...
	$(BIN)/python -m tests.faults $(ARGS)

fuzz: $(VENV)/.fuzz  ## hostile input for every parser; ARGS="--runs 100000 robots" for a part
	$(BIN)/python -m tests.fuzz $(ARGS)

wordpress-plugin: $(VENV)/.made  ## build/sitemapd-wordpress.zip, to upload in WordPress
	@mkdir -p build
	$(BIN)/python deploy/wordpress/build.py build/sitemapd-wordpress.zip

wheel: $(VENV)/.made  ## build/sitemapd-VERSION-py3-none-any.whl, for pipx, uv or pip
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build .

image:  ## the container image sitemapd:local, by buildah; BASE=debian without a container registry
	deploy/build_image.sh

lock: $(VENV)/.lock  ## requirements.txt anew: the newest versions that pyproject.toml allows
	$(BIN)/uv pip compile --quiet --universal --upgrade --generate-hashes --no-emit-index-url \
	  --no-annotate --custom-compile-command "make lock" --output-file requirements.txt pyproject.toml

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "sitemapd needs Python 3.11 or newer; name one with: make PYTHON=python3.12" >&2; exit 1; }
	@echo "creating $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "this Python cannot make virtual environments: apt-get install python3-venv" >&2; exit 1; }
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml
	@$(BIN)/python deploy/local/install_progress.py $(BIN)/pip install --no-color \
	  --progress-bar=off --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

$(VENV)/.lint: $(VENV)/.test
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[lint]'
	@touch $@

$(VENV)/.faults: $(VENV)/.test
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[faults]' || \
	  { echo "pyfuse3 is compiled here: apt-get install gcc pkg-config fuse3 libfuse3-dev" >&2; exit 1; }
	@touch $@

$(VENV)/.fuzz: $(VENV)/.test
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	@touch $@

$(VENV)/.lock: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[lock]'
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis bench-results.json simulate-results.json
