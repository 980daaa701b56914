# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Included by the Makefile. Binaries are built outside the repository (tests/tools/build_kubernetes.py).

.PHONY: build-kubernetes test-differential feature-gates

build-kubernetes: ## the kubelets, the API server and the oracles of the tests
	@$(PYTHON) tests/tools/build_kubernetes.py --all

test-differential: export PATH := $(CURDIR)/$(WORK)/venv-test/bin:$(PATH)
test-differential: setup-test ## our verdicts against the real kubelet's; DIFFERENTIAL_STARTS, DIFFERENTIAL_SEED
	@tests/tools/pytest.sh tests/differential
	@python tests/differential/compare.py

feature-gates: ## writes the table of the kubelet's feature gates
	@$(PYTHON) tests/differential/generate_feature_gate_table.py
