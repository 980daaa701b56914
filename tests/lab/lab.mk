# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Included by the main Makefile, from the repository's root.

.PHONY: setup-lab lab-up lab-down test-lab

LAB_PYTHON := PYTHONPATH=tests '$(WORK)/venv-systemd/bin/python'

# Virtual environment, collections, binaries and the image of the guests; whatever is there already is kept.
setup-lab: tree
	@tests/tools/venv.sh $(WORK)/venv-systemd requirements-ansible.txt requirements.txt tests/systemd/requirements.txt
	@PYTHON=$(WORK)/venv-systemd/bin/python tests/systemd/collections.sh
	@python3 tests/tools/build_kubernetes.py kube-apiserver v1.37.2
	@python3 tests/tools/build_kubernetes.py kube-controller-manager v1.37.2
	@PYTHONPATH=tests python3 -m lab.image

lab-up: setup-lab ## two machines with two NUMA nodes, kubelets and pods, to try things on (root; QEMU)
	@$(LAB_PYTHON) -m lab.up

lab-down: tree ## ends them
	@$(LAB_PYTHON) -m lab.up down

test-lab: setup-lab ## a maintenance window over machines with two NUMA nodes in emulation (root; QEMU)
	PATH="$(CURDIR)/$(WORK)/venv-systemd/bin:$$PATH" tests/tools/pytest.sh tests/lab --durations=0
