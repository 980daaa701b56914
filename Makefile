# `make demo` and `make test` do all the set-up, in .work, and need only python3, python3-venv, make, git and a package index.
# PYTHON=/path/to/python3 chooses the interpreter. Paths are relative: the checkout may be called anything.

SHELL := /bin/sh
PYTHON ?= python3
WORK := .work
HERE := $(WORK)/collections/ansible_collections/kubenode/memory
MYPY_DIRS := module_utils modules filter action plugin_utils

export PYTHON
export LC_ALL := C.UTF-8
export ANSIBLE_HOME := $(WORK)/ansible
export ANSIBLE_COLLECTIONS_PATH := $(WORK)/collections
export ANSIBLE_LOCALHOST_WARNING := False
export ANSIBLE_INVENTORY_UNPARSED_WARNING := False

.PHONY: help demo test lint format types unit corpus integration style bench mutation-check setup-run setup-test tree clean

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

tree:
	@mkdir -p '$(dir $(HERE))' && ln -sfn ../../../.. '$(HERE)'

setup-run: tree
	@tests/tools/venv.sh $(WORK)/venv-run requirements-ansible.txt requirements.txt

setup-test: tree
	@tests/tools/venv.sh $(WORK)/venv-test requirements-ansible.txt requirements.txt requirements-dev.txt

demo: export PATH := $(CURDIR)/$(WORK)/venv-run/bin:$(PATH)
demo: setup-run ## audits the sample fleet
	@ANSIBLE_DISPLAY_SKIPPED_HOSTS=False ansible-playbook kubenode.memory.demo -e memmgr_report_dir=$(WORK)/memmgr-reports

test: ## every check that needs nothing but a package index
	@tests/run.sh

lint types unit corpus integration style format bench mutation-check: export PATH := $(CURDIR)/$(WORK)/venv-test/bin:$(PATH)

lint: setup-test ## ruff, yamllint, antsibull-changelog, ansible-lint
	ruff check --no-cache --quiet .
	ruff format --no-cache --check --quiet .
	yamllint --strict .
	antsibull-changelog lint
	ansible-lint -q

format: setup-test ## ruff's fixes and format
	ruff check --fix .
	ruff format .

types: setup-test ## mypy --strict
	MYPYPATH=$(WORK)/collections:tests mypy $(foreach dir,$(MYPY_DIRS),$(patsubst %,$(HERE)/%,$(wildcard plugins/$(dir)))) tests/tools

unit: setup-test ## unit tests and vectors
	tests/tools/pytest.sh tests/unit -n 2

corpus: setup-test ## field captures in ../shared/corpus
	tests/tools/pytest.sh tests/corpus -n 2

integration: setup-test ## the modules, run by ansible-playbook
	tests/tools/pytest.sh tests/integration -n 2

style: setup-test ## the style table of this repository
	python tests/tools/style_table.py

bench: setup-test ## what an evaluation and an audit cost, as ratios
	python tests/bench/bench_evaluate.py
	python tests/bench/bench_audit.py

mutation-check: setup-test ## breaks each comparison and rule of the policy core in turn
	python tests/tools/mutation_check.py $(MUTATION_ARGUMENTS)

clean: ## removes the working folder
	rm -rf $(WORK)

# test-differential, test-kubelet and so on: what needs more than a package index
include $(wildcard tests/*/*.mk)
