#!/bin/sh
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints the name of a container image with Debian 12's systemd, containerd and Python, and makes it first if need be.
# The tar is kept in $KUBENODE_MEMORY_CACHE (default: ~/.cache/kubenode-memory), keyed by this script and its helper. Runs as root.
set -eu

packages=systemd-sysv,dbus,containerd,runc,python3,python3-yaml,iproute2,iptables,procps,util-linux
cache=${KUBENODE_MEMORY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubenode-memory}/systemd
rootfs=$(dirname "$0")/../tools/rootfs.sh
key=$(cat "$0" "$rootfs" | cksum | tr ' ' -)
tar=$cache/node-$key.tar
image=localhost/kubenode-memory-node:$key

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9

[ -e "$tar" ] || "$rootfs" "$packages" "$tar"
podman image exists "$image" || podman import --quiet "$tar" "$image" >/dev/null
echo "$image"
