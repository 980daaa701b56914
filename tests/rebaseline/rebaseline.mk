# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Included by the main Makefile, from the repository's root.

.PHONY: test-rebaseline

test-rebaseline: export PATH := $(CURDIR)/$(WORK)/venv-test/bin:$(PATH)
test-rebaseline: setup-test ## the writer of the state file: its contract, crashes, races, vectors (some of it as root)
	tests/tools/pytest.sh tests/rebaseline -n 2
