# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Included by the main Makefile, from the repository's root.

.PHONY: guard-image setup-guard test-guard bench-guard

# Packages, image, kubelets, promtool and node_exporter; whatever is there already is kept.
setup-guard: setup-test kubelet-binaries guard-image

guard-image:
	@tests/systemd/setup.sh
	@tests/systemd/image.sh
	@tests/guard/prometheus.sh

test-guard: export PATH := $(CURDIR)/$(WORK)/venv-test/bin:$(PATH)
test-guard: setup-guard ## the guard: before real kubelets, in Prometheus, on each Python, and what goes wrong (root; podman)
	tests/tools/pytest.sh tests/guard -n 2 --dist loadgroup --durations=5

bench-guard: export PATH := $(CURDIR)/$(WORK)/venv-test/bin:$(PATH)
bench-guard: setup-test ## what a run of the guard costs beside importing json and yaml (root)
	python tests/bench/bench_guard.py
