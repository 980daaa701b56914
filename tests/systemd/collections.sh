#!/bin/sh
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints a collections path with kubernetes.core, and makes it first if need be: taken out of the `ansible` wheel, since
# a package index is all that these tests ask for. PYTHON names an interpreter with pip.
set -eu

release=12.3.0
cache=${KUBENODE_MEMORY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubenode-memory}/systemd
target=$cache/collections-$release

mkdir -p "$cache"
exec 8>"$cache/collections.lock"
flock 8
if [ ! -d "$target" ]; then
    work=$(mktemp -d "$cache/wheel-XXXXXX")
    trap 'rm -rf "$work"' EXIT
    "${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "ansible==$release"
    "${PYTHON:-python3}" - "$work" <<'END'
import pathlib, sys, zipfile
work = pathlib.Path(sys.argv[1])
wheel = zipfile.ZipFile(next(work.glob("*.whl")))
wanted = "ansible_collections/kubernetes/core/"
wheel.extractall(work / "out", [name for name in wheel.namelist() if name.startswith(wanted) and "/tests/" not in name])
END
    mv "$work/out" "$target"
fi
echo "$target"
