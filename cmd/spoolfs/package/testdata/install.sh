#!/usr/bin/env bash
# install.sh deb|rpm DIRECTORY: see TestInstall. It runs in namespaces of its own,
# and changes nothing outside the directory.
set -euo pipefail
kind=$1 base=$2

fail() {
  echo "FAILED: $*"
  find / -xdev -name daemon.log 2>/dev/null | xargs -r tail -n 30
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

if [[ -z ${INSIDE:-} ]]; then
  # The system as it is, below an overlay.
  root=$base/root
  mkdir -p "$base/upper" "$root"
  mount -t tmpfs tmpfs "$base/upper"
  mkdir "$base"/upper/{new,work}
  mount -t overlay overlay -o "lowerdir=/,upperdir=$base/upper/new,workdir=$base/upper/work" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/run"
  mount -t tmpfs tmpfs "$root/tmp"
  # The store is on a disk.
  mkdir -p "$base"/{store,user} "$root"/var/lib/spoolfs{,-user} "$root/mnt"
  chmod 700 "$base"/{store,user}
  mount --bind "$base/store" "$root/var/lib/spoolfs"
  mount --bind "$base/user" "$root/var/lib/spoolfs-user"
  cp -- "$FIRST" "$LATER" "$PROGRAM" "$root/mnt"
  cp -- "$0" "$root/mnt/install.sh"
  exec env -i INSIDE=1 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
    FIRST="/mnt/${FIRST##*/}" LATER="/mnt/${LATER##*/}" LATER_VERSION="$LATER_VERSION" \
    chroot "$root" bash -euo pipefail /mnt/install.sh "$kind" /mnt
fi

install() { if [[ $kind == deb ]]; then dpkg --no-triggers --install "$1"; else rpm --upgrade --nodeps "$1"; fi; }
remove() { if [[ $kind == deb ]]; then dpkg --no-triggers --remove spoolfs; else rpm --erase spoolfs; fi; }
value() { sed -n "s/^$1 //p" /run/spool/.status/"$2"; }
record() { echo '{"pubTime": "20261130T070000.000", "baseUrl": "http://h", "relPath": "d/'"$1"'"}'; }

echo "--- installed"
install "$FIRST"
[[ $(spoolfs version) == "spoolfs "* ]] || fail "no spoolfs"
getent passwd spoolfs >/dev/null || fail "no user"

if [[ $kind == deb ]]; then
  said=$(systemd-analyze verify /usr/lib/systemd/system/spoolfs.service /usr/lib/systemd/system/spoolfs@.service 2>&1) || fail "units: $said"
  [[ -z $said ]] || fail "units: $said"
fi

echo "--- run by a user"
mkdir /run/user-spool
printf 'store: /var/lib/spoolfs-user\nbroker: amqp://u:p@127.0.0.1:1/\nexchange: x\nuser: spoolfs\n' >/etc/spoolfs/user.yaml
mount_user() { mount -t fuse.spoolfs -o log=/mnt/daemon.log /etc/spoolfs/user.yaml /run/user-spool; }
user_value() { sed -n "s/^$1 //p" /run/user-spool/.status/keeper; }
foreign_files() { find /var/lib/spoolfs-user ! -user spoolfs; }
[[ -n $(foreign_files) ]] || fail "the store is not root's"
mount_user
record user >/run/user-spool/f
[[ -z $(foreign_files) ]] || fail "not of the user: $(foreign_files)"
[[ $(awk '/^Uid:/ { print $2 }' "/proc/$(user_value worker_pid)/status") == "$(id -u spoolfs)" ]] || fail "the worker is somebody else's"
user_keeper=$(user_value pid)
umount /run/user-spool
waits_for eval '! kill -0 $user_keeper'
# What root has written in it is not given away.
touch /var/lib/spoolfs-user/root
if said=$(mount_user 2>&1); then fail "a store with a file of root is taken"; fi
[[ $said == *"belongs to user 0"*"chown -R spoolfs /var/lib/spoolfs-user"* ]] || fail "it says $said"
rm /var/lib/spoolfs-user/root /etc/spoolfs/user.yaml

echo "--- mounted from fstab"
echo "exchange: x" >/etc/spoolfs/site.yaml
echo "/etc/spoolfs/site.yaml /run/spool fuse.spoolfs _netdev,nofail,x-systemd.device-timeout=5s,store=/var/lib/spoolfs,broker=amqp://guest:guest@127.0.0.1:1/,topic=\"a,b\",log=/mnt/daemon.log 0 0" >>/etc/fstab
mount /run/spool
record first >/run/spool/first
mount -a -t fuse.spoolfs || fail "mount -a"
[[ $(grep -c " /run/spool fuse.spoolfs " /proc/mounts) == 1 ]] || fail "mounted twice"
keeper=$(value pid keeper)
waits_for grep -q '^topic a,b$' /run/spool/.status/config

# The broker is away, which is no reason to send jobs elsewhere.
sh /usr/share/spoolfs/slurm/prolog || fail "the prolog refuses jobs"

echo "--- upgraded under load"
writer() { # writer NUMBER: writes files until it is told to stop, counts them, and errors
  local n=0 errors=0
  until [[ -e /mnt/stop ]]; do
    if record "$1.$n" >"/run/spool/$1.$n"; then n=$((n + 1)); else errors=$((errors + 1)); fi
  done
  echo "$n $errors" >"/mnt/written.$1"
}
for i in 1 2 3 4 5 6 7 8; do writer $i & done

enough() { (($(value ingested_messages_total fs) > $1)); }
waits_for enough 100
install "$LATER"
[[ $(spoolfs status --json | grep -o '"version": *"[^"]*"' | head -n 1) == *"$LATER_VERSION"* ]] || fail "not the later version: $(spoolfs status --json | head -c 300)"
[[ $(value pid keeper) == "$keeper" ]] || fail "another keeper"
[[ $(value upgrades_total keeper) == 1 ]] || fail "no upgrade: $(cat /run/spool/.status/keeper)"
waits_for enough $(($(value ingested_messages_total fs) + 100))
touch /mnt/stop
wait
written=1
for i in 1 2 3 4 5 6 7 8; do
  read -r n errors </mnt/written.$i
  ((errors == 0)) || fail "writer $i has seen $errors errors"
  written=$((written + n))
done
echo "$written files, no error"

echo "--- not removed while it cannot be drained"
# The worker is stopped, and its keeper, which would replace it.
worker=$(value worker_pid keeper)
kill -STOP "$keeper" "$worker"
if remove; then fail "removed while a spool hangs"; fi
kill -CONT "$worker" "$keeper"
[[ -x /usr/bin/spoolfs ]] || fail "the program is gone"
grep -q " /run/spool fuse.spoolfs " /proc/mounts || fail "the mount is gone"

echo "--- removed"
remove
grep -q " /run/spool fuse.spoolfs " /proc/mounts && fail "still mounted"
[[ ! -e /usr/bin/spoolfs && ! -e /usr/sbin/mount.fuse.spoolfs ]] || fail "the program is still there"
[[ $kind == rpm ]] || dpkg --no-triggers --purge spoolfs
[[ $(cat /etc/spoolfs/site.yaml) == "exchange: x" ]] || fail "the configuration is gone"
[[ -e /var/lib/spoolfs/FORMAT ]] || fail "the store is gone"

echo "--- drained"
/mnt/spoolfs drain --config /dev/null --store /var/lib/spoolfs --broker stdout: >/mnt/sent 2>/mnt/drained || fail "drain: $(cat /mnt/drained)"
sent=$(grep -o 'relPath[^}]*' /mnt/sent | sort -u | wc -l)
((sent == written && $(wc -l </mnt/sent) == written)) || fail "$sent of $written messages, in $(wc -l </mnt/sent) lines"
echo "all is well"
