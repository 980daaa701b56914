# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Included by the main Makefile, from the repository's root.

.PHONY: test-guard bench-guard

test-guard: export PATH := $(CURDIR)/$(WORK)/venv-test/bin:$(PATH)
test-guard: setup-test ## the guard's executable on nodes that are file trees: each Python, what goes wrong, slow loss (root)
	tests/tools/pytest.sh tests/guard/test_command.py tests/guard/test_robustness.py tests/guard/test_slow_loss.py -n 2

bench-guard: export PATH := $(CURDIR)/$(WORK)/venv-test/bin:$(PATH)
bench-guard: setup-test ## what a run of the guard costs beside importing json and yaml (root)
	python tests/bench/bench_guard.py
