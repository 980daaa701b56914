# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Included by the main Makefile, from the repository's root.

.PHONY: test-kubelet kubelet-binaries

kubelet-binaries:
	python3 tests/tools/build_kubernetes.py kubelet v1.37.2
	python3 tests/tools/build_kubernetes.py kubelet v1.34.4
	python3 tests/tools/build_kubernetes.py kube-apiserver v1.37.2

test-kubelet: export PATH := $(CURDIR)/$(WORK)/venv-test/bin:$(PATH)
test-kubelet: setup-test kubelet-binaries ## the verdict against real kubelets (root; installs containerd, runc, etcd)
	tests/kubelet/setup.sh
	tests/tools/pytest.sh tests/kubelet -n 2 --dist loadgroup
