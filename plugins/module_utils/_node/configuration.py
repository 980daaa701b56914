# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Read the kubelet's configuration files: --config and the *.conf files below --config-dir (semantics 6.2)."""

from __future__ import annotations

import typing as t

from .._policy.configuration import ConfigurationInputs, Document

if t.TYPE_CHECKING:  # pragma: no cover
    from .kubelet import KubeletFacts
    from .root import HostRoot


def read_inputs(root: HostRoot, facts: KubeletFacts) -> ConfigurationInputs:
    """Read what the command line names; what the kubelet could not read or parse is the document's `problem`.

    :raises PermissionMissing: where a file exists and may not be read
    :raises LibraryMissing: where a file is YAML and PyYAML is not importable
    """
    raise NotImplementedError


def read_document(root: HostRoot, path: str) -> Document:
    """Read one YAML or JSON file."""
    raise NotImplementedError


def parse_document(path: str, data: bytes) -> Document:
    """Parse a document that is already here (`candidate_config`): YAML or JSON, as the kubelet would."""
    raise NotImplementedError
