# Thin: every target calls a program that can be called by itself. `make help` lists them.
# Virtual environments are made on first use, in the user's cache directory, from the exact pins in requirements/.

.DEFAULT_GOAL := help
.PHONY: help demo demo-down test lint types specs docs modules archive units sanity molecule test-kill clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Lab hosts on this machine with a PD group of the real engine on the CPU
	tests/lab/demo

demo-down: ## Take the lab hosts down again
	tests/lab/demo-down

test: ## All of the following up to molecule, with every supported ansible-core that has a Python here
	tests/all

lint: ## ruff, yamllint, ansible-lint, shellcheck and the changelog fragments
	tests/lint

types: ## mypy
	tests/venv lint mypy
	tests/venv lint mypy tests/archive tests/faults tests/lab/plumblab tests/modules tests/runner tests/specs roles/*/files/*.py

specs: ## Roles: argument specs, defaults and tasks agree
	tests/venv ansible-2.19 python tests/specs/check_specs.py
	tests/venv ansible-2.19 python -m pytest tests/specs tests/runner tests/lab/tests

docs: ## Render the documentation of all plugins and roles; a warning fails
	tests/docs

modules: ## Every module under wrong parameters, without rights, without programs, without an answer
	tests/venv ansible-2.19 python -m pytest tests/modules

archive: ## The built archive installs and plans; the checkout runs as it lies
	tests/venv --cores python -m pytest tests/archive

units: ## Unit tests, by ansible-test
	tests/ansible_test units

sanity: ## ansible-test sanity
	tests/ansible_test sanity

molecule: ## Scenarios on real systemd hosts
	tests/molecule.sh

test-kill: ## Kill a deployment at eight points; the next run must converge and serve
	tests/kill/run

clean: ## Remove what the targets above left in the checkout and in the cache, environments included
	rm -rf .ansible .cache .mypy_cache .pytest_cache .ruff_cache tests/output
	rm -rf "$${XDG_CACHE_HOME:-$$HOME/.cache}"/plumbline/venvs "$${XDG_CACHE_HOME:-$$HOME/.cache}"/plumbline/ansible-test
	find . -name __pycache__ -prune -exec rm -rf {} +
