#!/usr/bin/env bash
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes what a guest boots from: image.sh KUBELET OUT. Below the directory OUT: root.img, a Debian 12 with containerd and the
# kubelet; for each kernel RELEASE/vmlinuz and RELEASE/initrd; login_key, known_hosts. Runs as root in a mount namespace of
# its own; no loop device, no network in the chroot. Kernels are the newest that the archive has.
set -euo pipefail
# mmdebstrap runs a Python program for each package: the distribution's, not what a version manager puts before it.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
here=$(cd "$(dirname "$0")" && pwd)
kubelet=$1
out=$2
packages=systemd-sysv,dbus,kmod,openssh-server,sudo,python3,python3-yaml,iproute2,iptables,containerd,runc,procps,util-linux
# What the root file system is mounted with, and what else a guest may load.
early_modules=(virtio_pci virtio_blk virtio_net virtio_rng ext4 crc32c_generic)
modules=("${early_modules[@]}" overlay)

work=$(mktemp -d)
trap 'umount -l "$work" 2>/dev/null; rmdir "$work" 2>/dev/null || rm -rf "$work"' EXIT
# On disk it takes three times as long.
[ "$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)" -lt $((8 << 20)) ] || mount -t tmpfs -o size=6g lab "$work"
export TMPDIR=$work
root=$work/root

newest() {
    apt-cache search --names-only "$1" | cut -d ' ' -f 1 | sort --version-sort | tail -n 1
}

kernel_packages() {
    newest '^linux-image-6\.1\.0-[0-9]+-amd64$'
    newest '^linux-image-6\.12\.[0-9]+\+deb12-amd64$'
}

# The files of a kernel that are of use here, below $work/kernels/RELEASE.
unpack_kernels() {
    local package release
    [ "$(kernel_packages | wc -l)" -eq 2 ] || apt-get update -qq -o DPkg::Lock::Timeout=300
    mkdir "$work/debs"
    for package in $(kernel_packages); do
        release=${package#linux-image-}
        (cd "$work/debs" && apt-get download -qq -o APT::Sandbox::User=root "$package")
        mkdir -p "$work/kernels/$release"
        dpkg-deb --fsys-tarfile "$work/debs/$package"_*.deb | tar -x -C "$work/kernels/$release" --wildcards \
            '*/vmlinuz-*' '*/modules.order' '*/modules.builtin*' '*/kernel/lib' '*/kernel/crypto' '*/kernel/arch' \
            '*/kernel/fs/ext4' '*/kernel/fs/jbd2' '*/kernel/fs/mbcache*' '*/kernel/fs/overlayfs' '*/kernel/drivers/virtio' \
            '*/kernel/drivers/block/virtio*' '*/kernel/drivers/net/virtio*' '*/kernel/drivers/net/net_failover*' \
            '*/kernel/net/core' '*/kernel/drivers/char/hw_random'
        [ -d "$work/kernels/$release/lib" ] || ln -s usr/lib "$work/kernels/$release/lib"
        depmod -b "$work/kernels/$release" "$release"
    done
}

# The files of modules, those that they need first.
module_files() {
    local base=$1 module
    shift
    for module; do
        modprobe --dirname "$base" --set-version "$(basename "$base")" --show-depends "$module"
    done | awk '$1 == "insmod" && !seen[$2]++ {print $2}'
}

make_initrd() {
    local base=$work/kernels/$1 tree=$work/initrd-$1 file plain
    mkdir -p "$tree"/{bin,dev,lib,newroot,proc,sys}
    cp /bin/busybox "$tree/bin/"
    ln -s busybox "$tree/bin/sh"
    install -m 755 "$here/guest/init" "$tree/init"
    module_files "$base" "${early_modules[@]}" | while read -r file; do
        plain=/lib/$(basename "${file%.xz}")
        case $file in
            *.xz) xz -dc "$file" >"$tree$plain" ;;
            *) cp "$file" "$tree$plain" ;;
        esac
        echo "$plain" >>"$tree/load"
    done
    mkdir -p "$out/$1"
    cp "$base"/boot/vmlinuz-* "$out/$1/vmlinuz"
    (cd "$tree" && find . | cpio --quiet -o -H newc -R 0:0) | gzip -1 >"$out/$1/initrd"
}

install_modules() {
    local base=$work/kernels/$1 file target
    module_files "$base" "${modules[@]}" | while read -r file; do
        target=$root/lib/modules/$1/${file#*"/lib/modules/$1/"}
        install -D -m 644 "$file" "$target"
    done
    cp "$base/lib/modules/$1"/modules.{order,builtin}* "$root/lib/modules/$1/"
    depmod -b "$root" "$1"
}

# The pause image, unpacked by this machine's containerd: the guest's would take half a minute for it.
install_pause_image() {
    local address=$work/containerd.sock pid
    python3 "$here/pause_image.py" /bin/busybox "$work/pause.tar"
    cat >"$work/containerd.toml" <<TOML
version = 2
root = "$root/var/lib/containerd"
state = "$work/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
oom_score = 0
[grpc]
  address = "$address"
TOML
    containerd --config "$work/containerd.toml" --log-level warn >&2 &
    pid=$!
    until ctr --address "$address" version >/dev/null 2>&1; do
        kill -0 "$pid"
        sleep 0.1
    done
    ctr --address "$address" --namespace k8s.io images import --snapshotter native "$work/pause.tar" >&2
    kill "$pid"
    wait "$pid" || true
}

install_keys() {
    ssh-keygen -q -t ed25519 -N '' -C lab -f "$out/login_key"
    rm -f "$root"/etc/ssh/ssh_host_*
    ssh-keygen -q -t ed25519 -N '' -C lab -f "$root/etc/ssh/ssh_host_ed25519_key"
    echo "[127.0.0.1]:* $(cat "$root/etc/ssh/ssh_host_ed25519_key.pub")" >"$out/known_hosts"
    install -D -m 600 "$out/login_key.pub" "$root/root/.ssh/authorized_keys"
    # A password that nobody has, not a locked account.
    chroot "$root" useradd --create-home --shell /bin/bash --password '*' ansible
    install -d -m 700 -o "$(chroot "$root" id -u ansible)" "$root/home/ansible/.ssh"
    install -m 600 -o "$(chroot "$root" id -u ansible)" "$out/login_key.pub" "$root/home/ansible/.ssh/authorized_keys"
    openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=kubelet \
        -keyout "$root/etc/kubernetes/kubelet.key" -out "$root/etc/kubernetes/kubelet.crt" 2>/dev/null
}

unpack_kernels &
kernels=$!
"$here/../tools/rootfs.sh" "$packages" "$work/root.tar"
mkdir "$root"
tar -x -C "$root" --numeric-owner -f "$work/root.tar"
rm "$work/root.tar"
cp -r "$here/guest/root/." "$root/"
chmod 440 "$root/etc/sudoers.d/lab"
mkdir -p "$root/etc/kubernetes"
install -m 755 "$kubelet" "$root/usr/bin/kubelet"
install_keys
install_pause_image
chroot "$root" systemctl --quiet enable network.service ssh.service containerd.service
chroot "$root" systemctl --quiet mask serial-getty@ttyS0.service getty@tty1.service \
    systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-remount-fs.service sys-kernel-debug.mount \
    sys-kernel-tracing.mount proc-sys-fs-binfmt_misc.automount
wait "$kernels"
for base in "$work"/kernels/*; do
    make_initrd "${base##*/}"
    install_modules "${base##*/}"
done
truncate -s 3G "$out/root.img"
mke2fs -q -F -t ext4 -E lazy_itable_init=1,root_owner=0:0 -d "$root" "$out/root.img"
