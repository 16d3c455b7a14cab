# Every target does all of its own set-up: it needs Python >= 3.11, make and git, nothing else.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.interlace-ready
TIERS := tests/unit tests/contract tests/cluster tests/node tests/browser

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv demo test check seeds gke-oracle bench faults programs lock clean

help: ## Say what the targets do
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile

venv: $(STAMP) ## Make the virtual environment from the lock

$(STAMP): requirements/dev.txt pyproject.toml tools/venv.sh
	@sh tools/venv.sh $(VENV) $(STAMP)

demo: $(STAMP) ## Form a ComputeDomain on a simulated cluster, break it, heal it, tear it down
	@$(BIN)/interlace demo $(ARGS)

seeds: $(STAMP) ## The demo with the two manifests of the seed page in ../shared
	@$(BIN)/python -m tools.seeds ../shared/seeds/004_cd68419bcf51650b.txt build/seeds
	@$(BIN)/interlace demo --manifests build/seeds $(ARGS)
	@$(BIN)/python -m tools.seeds --tables ../shared/seeds/000_2354c559a4c6ee4d.txt tests/data/seeds
	@$(BIN)/python -m tools.gke_page ../shared/seeds/000_2354c559a4c6ee4d.txt

gke-oracle: $(STAMP) ## Compare what an installed gcloud sends with our requests
	@$(BIN)/python -m tools.gke_oracle $(ARGS)

programs: $(STAMP) ## Build the real control plane for tests, once (7 minutes on 2 cores)
	@$(BIN)/python -m testbed get > /dev/null

test: $(STAMP) programs ## All tiers: unit, contract, cluster, node (root), browser; one whose parts are missing fails
	@$(BIN)/python -m pytest $(TIERS) $(ARGS)

bench: $(STAMP) programs ## Measure domains, idle memory and the start of the command; writes docs/performance.md
	-@$(BIN)/python -m bench.cli
	-@$(BIN)/python -m bench.footprint
	-@$(BIN)/python -m bench.webhook
	-@$(BIN)/python -m bench.nccl_log
	-@$(BIN)/python -m bench.nri
	@$(BIN)/python -m bench.domains $(ARGS)
	@$(BIN)/python -m bench.domains report

faults: $(STAMP) programs ## Make every fault of the table happen; writes docs/reliability.md
	@$(BIN)/python -m bench.faults $(ARGS)
	@$(BIN)/python -m bench.faults report

check: $(STAMP) ## Lint, format, types, import layers, docs and lock
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m tools.modules --check
	@$(BIN)/python -m tools.cli_reference --check
	@$(BIN)/python -m tools.families_reference --check
	@$(BIN)/python -m tools.verdicts --check
	@$(BIN)/python -m tools.examples --check
	@$(BIN)/python -m tools.cluster_file --check
	@$(BIN)/python -m tools.rules_reference --check
	@$(BIN)/python -m tools.gke_import_reference --check
	@$(BIN)/python -m tools.check_docs
	@$(BIN)/python -m tools.check_lock

lock: $(STAMP) ## Pin all dependencies anew
	@sh tools/lock.sh $(BIN)/python

clean: ## Remove everything that the other targets made in the checkout; built programs stay in the user's cache
	rm -rf $(VENV) build dist reports .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
