# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs commands in turns and prints what each run took: in_turns.py ROUNDS JSON-LIST-OF-COMMANDS

Prints for each round and command [seconds of wall time, of CPU time, KiB of peak memory] as JSON. It imports next to
nothing: the kernel counts the memory of the process that starts a program as that program's too.
"""

import json
import os
import sys
import time

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "INVOCATION_ID": "1"}


def measured(command):  # type: ignore[no-untyped-def]
    begin = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, ENVIRONMENT)
    _pid, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"{command} ended with status {status}")
    return [time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss]


if __name__ == "__main__":
    print(
        json.dumps([[measured(command) for command in json.loads(sys.argv[2])] for _round in range(int(sys.argv[1]))])
    )
