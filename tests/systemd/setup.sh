#!/bin/sh
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what tests/systemd needs from the distribution and is not there; does nothing the second time.
set -eu

missing=
need() { # package, file that proves it
    [ -e "$2" ] || missing="$missing $1"
}

need podman /usr/bin/podman
need runc /usr/sbin/runc
need mmdebstrap /usr/bin/mmdebstrap
need etcd-server /usr/bin/etcd
need openssl /usr/bin/openssl
need util-linux /usr/bin/setpriv

[ -z "$missing" ] && exit 0
[ "$(id -u)" = 0 ] || { echo "tests/systemd/setup.sh: run as root; missing:$missing" >&2; exit 1; }
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet
# shellcheck disable=SC2086 # a list of package names
apt-get install -o DPkg::Lock::Timeout=300 --quiet --yes --no-install-recommends $missing
