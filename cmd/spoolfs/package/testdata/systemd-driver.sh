#!/usr/bin/env bash
# What TestSystemd does within its systemd.
set -euo pipefail
exec >/mnt/log 2>&1
echo "systemd is up"

fail() {
  echo "FAILED: $*"
  systemctl status spoolfs --no-pager || true
  journalctl --no-pager -u spoolfs | tail -n 40
  exit 1
}
waits_for() {
  local end=$((SECONDS + 60))
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || fail "waited a minute for: $*"
    sleep 0.05
  done
}
show() { systemctl show spoolfs --property="$1" --value; }
is() { [[ $(show "$1") == $2 ]]; }
must() { is "$1" "$2" || fail "$1 is $(show "$1"), want $2"; }
mounted() { grep -q " /run/spool fuse.spoolfs " /proc/mounts; }
record() { echo '{"pubTime": "20261130T070000", "baseUrl": "http://h", "relPath": "a/b"}'; }

mkdir -p /etc/spoolfs
printf 'mountpoint: /run/spool\nbroker: amqp://u@127.0.0.1:1/\nexchange: x\n' >/etc/spoolfs/spoolfs.yaml
echo secret >/etc/spoolfs/password
chmod 600 /etc/spoolfs/password

echo "--- installed and started"
dpkg --no-triggers --install /mnt/first.deb
must ActiveState active
record >/run/spool/first || fail "ready, and no file can be written"
waits_for is StatusText "warning: waiting, 1 waiting*"
must NFileDescriptorStore 2
[[ $(readlink /proc/1/ns/mnt) == "$(readlink "/proc/$(show MainPID)/ns/mnt")" ]] || fail "a mount namespace of its own"
waits_for grep -q "connection refused" /run/spool/.status/publisher # it has found the password
grep -qr secret /proc/"$(show MainPID)"/{cmdline,environ} && fail "the password shows"

echo "--- another one, as a user"
mkdir -p /etc/spoolfs/second /run/second
printf 'mountpoint: /run/second\nbroker: amqp://u@127.0.0.1:1/\nexchange: x\nuser: spoolfs\n' >/etc/spoolfs/second/spoolfs.yaml
systemctl start spoolfs@second || { journalctl --no-pager -u spoolfs@second | tail -n 20; fail "the second one"; }
record second >/run/second/f || fail "the second one takes no file"
[[ -e /var/lib/spoolfs-second/FORMAT && -z $(find /var/lib/spoolfs-second ! -user spoolfs) ]] || fail "its store: $(ls -l /var/lib/spoolfs-second)"
[[ $(systemctl show spoolfs@second --property=NFileDescriptorStore --value) == 2 ]] || fail "it keeps no descriptors"
systemctl stop spoolfs@second
grep -q " /run/second fuse.spoolfs " /proc/mounts && fail "the second one is still mounted"
must ActiveState active

(
  n=0 errors=0
  until [[ -e /mnt/stop ]]; do
    if record >"/run/spool/$n"; then n=$((n + 1)); else errors=$((errors + 1)); fi
  done
  echo "$n $errors" >/mnt/written
) &
writer=$!

echo "--- restarted"
before=$(show MainPID)
systemctl restart spoolfs
must ActiveState active
[[ $(show MainPID) != "$before" ]] || fail "the same process"
echo "--- all killed"
before=$(show MainPID)
systemctl kill --signal=KILL spoolfs
waits_for is NRestarts 1
waits_for is ActiveState active
[[ $(show MainPID) != "$before" ]] || fail "the same process"
echo "--- upgraded"
before=$(show MainPID)
dpkg --no-triggers --install /mnt/later.deb
must MainPID "$before"
must NRestarts 1
[[ $(spoolfs status --json) == *"$(spoolfs version | cut -d' ' -f2)"* ]] || fail "not the later version"
echo "--- reloaded"
echo "linger: 7s" >>/etc/spoolfs/spoolfs.yaml
systemctl reload spoolfs
must ActiveState active
waits_for grep -q "^linger 7s" /run/spool/.status/config
touch /mnt/stop
wait "$writer"
read -r written errors </mnt/written
((errors == 0)) || fail "$errors errors of $written"

echo "--- stopped"
systemctl stop spoolfs
must ActiveState inactive
must Result success
mounted && fail "still mounted"
echo "--- removed"
systemctl start spoolfs
mounted || fail "not mounted"
dpkg --no-triggers --remove spoolfs
mounted && fail "still mounted"
[[ -e /var/lib/spoolfs/FORMAT && -e /etc/spoolfs/spoolfs.yaml ]] || fail "something is gone"
echo "$written files, no error"
echo "all is well"
