# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Included by the main Makefile, from the repository's root.

.PHONY: setup-systemd test-rebaseline-roles side-by-side test-fleet test-molecule

SYSTEMD_TESTS := PATH="$(CURDIR)/$(WORK)/venv-systemd/bin:$$PATH"

# Packages, image, collections and virtual environment; whatever is there already is kept.
setup-systemd: tree
	@tests/systemd/setup.sh
	@tests/tools/venv.sh $(WORK)/venv-systemd requirements-ansible.txt requirements.txt tests/systemd/requirements.txt
	@PYTHON=$(WORK)/venv-systemd/bin/python tests/systemd/collections.sh
	@tests/systemd/image.sh

test-rebaseline-roles: setup-systemd kubelet-binaries ## re-baseline, restart and reset with real kubelets as systemd units (root; podman)
	$(SYSTEMD_TESTS) tests/tools/pytest.sh tests/systemd/test_remediate.py tests/systemd/test_restart.py -k 'not side_by_side' --durations=0

side-by-side: setup-systemd kubelet-binaries ## the table of the guide: re-baselining beside deleting the file
	$(SYSTEMD_TESTS) tests/tools/pytest.sh tests/systemd/test_remediate.py -k side_by_side

test-fleet: setup-systemd ## forty nodes in batches, failures and tags
	$(SYSTEMD_TESTS) tests/tools/pytest.sh tests/systemd/test_fleet.py -n 2 --durations=0

# From the collection's root, where molecule takes its name from galaxy.yml.
test-molecule: setup-systemd ## every verdict twice and in check mode
	cd '$(HERE)' && $(SYSTEMD_TESTS) ANSIBLE_COLLECTIONS_PATH="$(CURDIR)/$(WORK)/collections" molecule test --scenario-name rebaseline
