#!/bin/sh
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes a tar of a Debian 12 that boots systemd: rootfs.sh PACKAGE,PACKAGE... OUT.tar. Runs as root, with mmdebstrap.
set -eu
# mmdebstrap runs a Python program for each package: the distribution's, not what a version manager puts before it.
PATH=/usr/sbin:/usr/bin:/sbin:/bin

packages=$1
out=$2
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
    bookworm "$out.new" "$sources" >&2
mv "$out.new" "$out"
