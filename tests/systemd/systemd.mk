# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Included by the main Makefile, from the repository's root.

.PHONY: setup-systemd test-rebaseline-roles side-by-side test-fleet test-molecule

SYSTEMD_TESTS := PATH=$(CURDIR)/$(WORK)/venv-systemd/bin:$$PATH

# Packages, image, collections, virtual environment and kubelets; whatever is there already is kept.
setup-systemd: tree
	@tests/systemd/setup.sh
	@tests/tools/venv.sh $(WORK)/venv-systemd requirements-ansible.txt requirements.txt tests/systemd/requirements.txt
	@PYTHON=$(WORK)/venv-systemd/bin/python tests/systemd/collections.sh
	@tests/systemd/image.sh
	@for release in v1.34.4 v1.37.2; do python3 tests/tools/build_kubernetes.py kubelet $$release || exit 1; done
	@python3 tests/tools/build_kubernetes.py kube-apiserver v1.37.2

test-rebaseline-roles: setup-systemd ## re-baseline, restart and reset with real kubelets as systemd units (root; podman)
	$(SYSTEMD_TESTS) tests/tools/pytest.sh tests/systemd/test_remediate.py -k 'not side_by_side' --durations=0

side-by-side: setup-systemd ## the table of the guide: re-baselining beside deleting the file
	$(SYSTEMD_TESTS) tests/tools/pytest.sh tests/systemd/test_remediate.py -k side_by_side

test-fleet: setup-systemd ## forty nodes in batches, failures and tags
	$(SYSTEMD_TESTS) tests/tools/pytest.sh tests/systemd/test_fleet.py --durations=0

test-molecule: setup-systemd ## every verdict twice and in check mode
	$(SYSTEMD_TESTS) ANSIBLE_COLLECTIONS_PATH=$(CURDIR)/$(WORK)/collections molecule test --scenario-name rebaseline
