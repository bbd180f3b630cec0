#!/bin/sh
# Before a removal: "remove" of dpkg, or the number of versions that are left, of
# rpm. All spools are drained and unmounted; if one cannot be, nothing is removed.
set -e

case "$1" in
remove | 0) ;;
*) exit 0 ;; # an upgrade
esac

systemd_runs() { [ -d /run/systemd/system ]; }

if ! spoolfs unmount --all; then
  echo 'spoolfs: not removed, as a spool is still mounted, see above; "spoolfs unmount --force" takes it away' >&2
  exit 1
fi
if systemd_runs; then
  systemctl stop spoolfs.service 'spoolfs@*.service' || true
fi
if [ "$1" = 0 ] && command -v systemctl >/dev/null 2>&1; then
  systemctl --no-reload disable spoolfs.service || true
fi
