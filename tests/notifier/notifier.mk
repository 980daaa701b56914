# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Included by the main Makefile, from the repository's root.

.PHONY: test-notifier test-notifier-unit notifier-binaries

notifier-binaries:
	python3 tests/tools/build_kubernetes.py kubelet v1.37.2
	python3 tests/tools/build_kubernetes.py kubelet v1.34.4

test-notifier: export PATH := $(CURDIR)/$(WORK)/venv-test/bin:$(PATH)
test-notifier: setup-test notifier-binaries ## the notifier against this kernel and real kubelets (root; cgroup v1)
	tests/kubelet/setup.sh
	tests/tools/pytest.sh tests/notifier -n 2 --dist loadfile

test-notifier-unit: setup-systemd ## the role on a real kubelet as a systemd unit (root; podman)
	$(SYSTEMD_TESTS) tests/tools/pytest.sh tests/systemd/test_notifier.py --durations=0
