#!/bin/sh
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints a directory with Debian's promtool and prometheus-node-exporter, and makes it first if need be. The packages are
# unpacked and not installed: they would start services on this machine.
set -eu

cache=${KUBENODE_MEMORY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubenode-memory}/guard
target=$cache/prometheus

mkdir -p "$cache"
exec 7>"$cache/lock"
flock 7
if [ ! -d "$target" ]; then
    work=$(mktemp -d "$cache/packages-XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cd "$work"
    fetch() { apt-get download --quiet --quiet -o APT::Sandbox::User=root prometheus prometheus-node-exporter >&2; }
    fetch || { apt-get update --quiet -o DPkg::Lock::Timeout=300 >&2 && fetch; }
    for package in *.deb; do
        dpkg-deb --extract "$package" unpacked
    done
    mkdir out
    mv unpacked/usr/bin/promtool unpacked/usr/bin/prometheus-node-exporter out
    mv out "$target"
fi
echo "$target"
