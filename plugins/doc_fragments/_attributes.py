# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What the attributes of a module mean. A module says only what it supports."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Predicts the result in check mode and leaves the node as it is.
  diff_mode:
    description: Says in diff mode what it changes or, in check mode, would change.
  idempotent:
    description:
      - A second run with the same arguments on an unchanged node reports no change.
      - Values that the node itself changes, such as the boot or the time, may differ in the result.
  platform:
    description: The operating systems on which the module runs.
"""

    # For modules that read and never write.
    READ_ONLY = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - This module never changes the node.
  diff_mode:
    support: N/A
    details:
      - This module never changes the node.
  idempotent:
    support: full
    details:
      - This module never changes the node.
  platform:
    support: full
    platforms: linux
"""
