#!/bin/sh
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints the name of a container image with Debian 12's systemd, containerd and Python, and makes it first if need be.
# The tar is kept in $KUBENODE_MEMORY_CACHE (default: ~/.cache/kubenode-memory), keyed by this script. Runs as root.
set -eu

packages=systemd-sysv,dbus,containerd,runc,python3,python3-yaml,iproute2,iptables,procps,util-linux
cache=${KUBENODE_MEMORY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubenode-memory}/systemd
key=$(cksum <"$0" | tr ' ' -)
tar=$cache/node-$key.tar
image=localhost/kubenode-memory-node:$key

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9

if [ ! -e "$tar" ]; then
    sources=/etc/apt/sources.list.d/debian.sources
    [ -e "$sources" ] || sources=/etc/apt/sources.list
    # shellcheck disable=SC2016 # $1 is mmdebstrap's
    mmdebstrap --quiet --variant=minbase --mode=root --format=tar --include="$packages" \
        --aptopt='APT::Install-Recommends "false"' \
        --dpkgopt='force-unsafe-io' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
        --customize-hook='rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/*' \
        --customize-hook='chroot "$1" systemctl mask apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer \
            fstrim.timer e2scrub_reap.service dpkg-db-backup.timer systemd-pstore.service' \
        --customize-hook='ln -sf /lib/systemd/system/multi-user.target "$1"/etc/systemd/system/default.target' \
        --customize-hook=': >"$1"/etc/machine-id' \
        bookworm "$tar.new" "$sources" >&2
    mv "$tar.new" "$tar"
fi
podman image exists "$image" || podman import --quiet "$tar" "$image" >/dev/null
echo "$image"
