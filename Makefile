PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# Everything but what weighs hundreds of megabytes more: `make install-lens`, `make install-ray`.
EXTRAS := dev,postgres,sign,examples,bench,local,hosted,mcp,frameworks,otel,metrics,docs
# Three on two cores: while one waits for a process of its own, the others compute.
WORKERS ?= 3

.PHONY: install install-lens install-ray demo docs pictures test lint types imports unit evidence benchmarks benchmarks-small clean

install: $(STAMP) ## everything this project needs, into .venv

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	$(BIN)/python -m compileall -q src  # pip compiles only what it copies
	touch $(STAMP)

install-lens: install ## torch and Transformers (about 1 GB), for `sopilot lab lens`
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lens]'

install-ray: install ## Ray (about 200 MB), for `sopilot lab run --on ray`
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray]'

# The base installation alone, in a folder of its own: some seconds.
.venv-demo/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

demo: .venv-demo/.installed ## watch a call being blocked, proven and carried out
	.venv-demo/bin/sopilot demo

test: install lint types imports unit ## what CI runs

lint: install
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples

types: install
	$(BIN)/mypy
	$(BIN)/mypy -p quotation
	$(BIN)/mypy -p airline

imports: install
	$(BIN)/lint-imports

# Hundreds of processes start in the tests: none compiles again what another has compiled.
unit: export PYTHONDONTWRITEBYTECODE =
unit: install
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow"

docs: install ## the documentation site, into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

pictures: install ## the README's pictures; the audit page needs Chromium
	$(BIN)/python docs/pictures/blocked_call.py
	$(BIN)/python docs/pictures/audit_page.py

evidence: install ## the campaigns whose sources have changed; ONLY="tamper crashes/duels" for some
	$(BIN)/python benchmarks/evidence.py $(ONLY)

benchmarks: install ## every performance figure in one table
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench-peers]'
	$(BIN)/python benchmarks

benchmarks-small: install ## that the benchmarks work
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench-peers]'
	$(BIN)/python benchmarks --small

clean:
	rm -rf .venv .venv-demo .mypy_cache .pytest_cache .ruff_cache .hypothesis build
