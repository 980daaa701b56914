# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Included by the main Makefile, from the repository's root.

.PHONY: test-configure

test-configure: export PATH := $(CURDIR)/$(WORK)/venv-test/bin:$(PATH)
test-configure: setup-test kubelet-binaries ## what is written starts, what is refused does not (root; installs containerd, runc)
	tests/kubelet/setup.sh
	tests/tools/pytest.sh tests/configure
