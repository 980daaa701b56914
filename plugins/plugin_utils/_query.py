# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""JMESPath over the results of a run."""

from __future__ import annotations

import typing as t

from ._results import HostResult, ResultsError


def query_results(hosts: t.Sequence[HostResult], expression: str) -> t.Any:
    """What a JMESPath expression gives of the list of records.

    :raises ResultsError: if the library is missing, or the expression is wrong
    """
    try:
        import jmespath
        import jmespath.exceptions
    except ImportError as error:
        raise ResultsError(
            f"memmgr_report_query needs the Python library jmespath on the controller ({error}). Install it for the "
            "Python that runs ansible-playbook, such as with python3 -m pip install jmespath."
        ) from error
    try:
        return jmespath.search(expression, [result.data or {"host": result.host} for result in hosts])
    except jmespath.exceptions.JMESPathError as error:
        # Some of the library's texts have an empty line and a marker below the expression.
        raise ResultsError(f"memmgr_report_query is {expression!r}: {' '.join(str(error).split())}") from error


def selected_hosts(answer: t.Any) -> t.List[str]:
    """The hosts that an answer names: a list of records, of mappings with `host`, or of names."""
    items = answer if isinstance(answer, list) else [answer]
    names = (item.get("host") if isinstance(item, dict) else item for item in items)
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))
