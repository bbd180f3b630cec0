#!/usr/bin/env bash
# systemd.sh DIRECTORY: see TestSystemd. It runs a systemd in namespaces of its own, on
# an overlay of this system, which runs systemd-driver.sh and ends.
set -euo pipefail
base=$1 root=$1/root

if [[ -z ${NAMESPACES:-} ]]; then
  # A control group for it, without which systemd does not start.
  for cgroup in /sys/fs/cgroup/unified /sys/fs/cgroup; do
    [[ $(stat -f -c %T "$cgroup" 2>/dev/null) == cgroup2fs ]] || continue
    mkdir "$cgroup/spoolfs-test-$$"
    echo $$ >"$cgroup/spoolfs-test-$$/cgroup.procs"
    break
  done
  exec env NAMESPACES=1 unshare --mount --propagation private --pid --fork --kill-child --uts --ipc --cgroup -- bash "$0" "$base"
fi

mkdir "$base/upper" "$root" "$base/store"
mount -t tmpfs tmpfs "$base/upper"
mkdir "$base"/upper/{new,work}
mount -t overlay overlay -o "lowerdir=/,upperdir=$base/upper/new,workdir=$base/upper/work" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/dev"
mkdir "$root"/dev/{pts,shm}
for device in null zero full random urandom tty fuse; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mkdir -p "$root/var/lib/spoolfs" "$root/mnt"
mount --bind "$base/store" "$root/var/lib/spoolfs"
mount --bind "$base/out" "$root/mnt"
# Nothing of this system starts, but what the driver asks for.
rm -rf "$root"/etc/systemd/system/*.wants "$root/usr/sbin/policy-rc.d"
for unit in dbus.socket systemd-logind.service systemd-udevd.service rabbitmq-server.service; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
cat >"$root/etc/systemd/system/driver.service" <<'U'
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/bash -euo pipefail /mnt/driver.sh
ExecStopPost=-/bin/systemctl exit 0 --force --force
U
printf '[Unit]\nWants=driver.service systemd-journald.socket\n' >"$root/etc/systemd/system/start.target"
# As at the start of a machine: credentials are mounted for all to see.
mount --make-rshared "$root"
exec env -i container=test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  chroot "$root" /lib/systemd/systemd --system --unit=start.target --log-target=console --show-status=no
