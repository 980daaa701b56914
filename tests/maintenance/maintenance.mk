# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Included by the main Makefile, from the repository's root.

.PHONY: test-maintenance

test-maintenance: tree ## a maintenance window over machines that reboot, with a real API server (root; installs etcd)
	@tests/kubelet/setup.sh
	@tests/tools/venv.sh $(WORK)/venv-systemd requirements-ansible.txt requirements.txt tests/systemd/requirements.txt
	@PYTHON=$(WORK)/venv-systemd/bin/python tests/systemd/collections.sh
	@python3 tests/tools/build_kubernetes.py kube-apiserver v1.37.2
	PATH="$(CURDIR)/$(WORK)/venv-systemd/bin:$$PATH" tests/tools/pytest.sh tests/maintenance --durations=0
