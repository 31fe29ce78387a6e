#!/bin/sh
# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Turns a fresh root file system into a lab host. Called by mmdebstrap with the root's path, after the packages are in.
set -eu
root=$1

chroot "$root" useradd --create-home --shell /bin/bash ops
# '*' instead of '!': no password fits, but the account is not locked, which sshd would refuse without PAM.
chroot "$root" usermod --password '*' ops
chmod 0440 "$root/etc/sudoers.d/ops"

# Host keys belong to a host, not to an image: they are mounted.
rm -f "$root"/etc/ssh/ssh_host_*
chroot "$root" systemctl enable ssh.service

# A privileged container sees the machine's own devices, kernel settings and disks. None of these may act on them,
# and the first few would leave the host "degraded".
for unit in \
    systemd-modules-load.service systemd-sysctl.service systemd-binfmt.service proc-sys-fs-binfmt_misc.automount \
    systemd-udevd.service systemd-udev-trigger.service systemd-udevd-control.socket systemd-udevd-kernel.socket \
    systemd-random-seed.service systemd-timesyncd.service systemd-pstore.service systemd-remount-fs.service \
    systemd-hwdb-update.service kmod-static-nodes.service modprobe@.service \
    sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount dev-hugepages.mount \
    fstrim.timer fstrim.service \
    console-getty.service getty@.service getty-static.service serial-getty@.service \
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service \
    systemd-networkd.service systemd-networkd.socket systemd-networkd-wait-online.service
do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
chroot "$root" systemctl set-default multi-user.target

# The container engine names the machine; an id in the image would be the same on every host.
: > "$root/etc/machine-id"
mkdir -p "$root/var/log/journal" "$root/srv/wheelhouse" "$root/opt/lab" "$root/etc/plumbline-lab"
