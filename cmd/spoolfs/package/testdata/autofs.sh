#!/usr/bin/env bash
# autofs.sh DIRECTORY PROGRAM: see TestAutofs. It runs in namespaces of its own, and
# changes nothing outside the directory.
set -euo pipefail
base=$1 program=$2

if [[ -z ${INSIDE:-} ]]; then
  # The system as it is, below an overlay, with the helper where mount(8) looks for it.
  root=$base/root
  mkdir -p "$base/upper" "$root" "$base/store"
  mount -t tmpfs tmpfs "$base/upper"
  mkdir "$base"/upper/{new,work}
  mount -t overlay overlay -o "lowerdir=/,upperdir=$base/upper/new,workdir=$base/upper/work" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/run"
  mount -t tmpfs tmpfs "$root/tmp"
  mkdir -p "$root/var/lib/spoolfs" "$root/mnt" "$root/auto"
  mount --bind "$base/store" "$root/var/lib/spoolfs" # on a disk
  rm -f "$root/usr/bin/spoolfs" "$root/usr/sbin/mount.fuse.spoolfs"
  cp -- "$program" "$root/usr/bin/spoolfs"
  ln -s /usr/bin/spoolfs "$root/usr/sbin/mount.fuse.spoolfs"
  cp -- "$0" "$root/mnt/autofs.sh"
  exec env -i INSIDE=1 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
    chroot "$root" bash -euo pipefail /mnt/autofs.sh /mnt -
fi

fail() {
  echo "FAILED: $*"
  tail -n 30 /mnt/automount.log /mnt/daemon.log || true
  exit 1
}
# waits_for COMMAND...: until it succeeds, at most a minute.
waits_for() {
  local end=$((SECONDS + 60))
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || fail "waited a minute for: $*"
    sleep 0.05
  done
}
mounted() { grep -q " /auto/spool fuse.spoolfs " /proc/mounts; }
record() { echo '{"pubTime": "20261130T070000.000", "baseUrl": "http://h", "relPath": "d/'"$1"'"}'; }

mkdir -p /etc/spoolfs
printf 'store: /var/lib/spoolfs\nbroker: amqp://guest:guest@127.0.0.1:1/\nexchange: x\n' >/etc/spoolfs/auto.yaml
echo "/auto /etc/auto.spoolfs --timeout=2" >/etc/auto.master.spoolfs
echo "spool -fstype=fuse.spoolfs,config=/etc/spoolfs/auto.yaml,log=/mnt/daemon.log :none" >/etc/auto.spoolfs
# The kernel knows it by its process group, which must be one of this namespace.
setsid automount --foreground --verbose --dont-check-daemon /etc/auto.master.spoolfs >/mnt/automount.log 2>&1 &
automount=$!
waits_for grep -q " /auto autofs " /proc/mounts
mounted && fail "mounted before anybody has asked"

echo "--- mounted by who writes"
record first >/auto/spool/first || fail "the first write"
mounted || fail "not mounted"
waits_for grep -q '^ready 1$' /auto/spool/.status/queue

echo "--- unmounted when nobody uses it"
waits_for eval '! mounted'
waits_for eval '! pgrep -x spoolfs'

echo "--- mounted again"
record second >/auto/spool/second || fail "the second write"
waits_for grep -q '^ready 2$' /auto/spool/.status/queue
kill "$automount"
wait "$automount" || fail "automount: $?"
mounted && fail "still mounted"
echo "all is well"
