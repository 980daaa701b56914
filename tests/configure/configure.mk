# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Included by the main Makefile, from the repository's root.

.PHONY: test-configure test-configure-roles test-molecule-configure

test-configure: export PATH := $(CURDIR)/$(WORK)/venv-test/bin:$(PATH)
test-configure: setup-test kubelet-binaries ## what is written starts, what is refused does not; upgrades by kubeadm (root; installs containerd, runc, etcd)
	tests/kubelet/setup.sh
	python3 tests/tools/build_kubernetes.py kubeadm v1.37.2
	tests/tools/pytest.sh tests/configure -n 2 --dist loadgroup

test-configure-roles: setup-systemd ## the playbook with real kubelets as systemd units: written, restarted, verified (root; podman)
	$(SYSTEMD_TESTS) tests/tools/pytest.sh tests/systemd/test_configure.py --durations=0

test-molecule-configure: setup-systemd ## every place that settings are written to: set, set again, another value, given back
	cd '$(HERE)' && $(SYSTEMD_TESTS) ANSIBLE_COLLECTIONS_PATH="$(CURDIR)/$(WORK)/collections" molecule test --scenario-name configure
