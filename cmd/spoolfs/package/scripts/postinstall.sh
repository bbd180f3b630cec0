#!/bin/sh
# After an installation: "configure [VERSION BEFORE]" of dpkg, or the number of
# versions that are installed now, of rpm.
set -e

case "$1" in
configure) before=$2 kind=deb ;;
1) before= kind=rpm ;;
[2-9]*) before=some kind=rpm ;;
*) exit 0 ;; # a removal that was refused: nothing has changed
esac

has() { command -v "$1" >/dev/null 2>&1; }
systemd_runs() { [ -d /run/systemd/system ]; }

if has systemd-sysusers; then
  systemd-sysusers spoolfs.conf || true
elif has useradd && ! getent passwd spoolfs >/dev/null; then
  useradd --system --home-dir /var/lib/spoolfs --no-create-home --shell /usr/sbin/nologin spoolfs || true
fi
# Not a question to what may be mounted there.
mkdir /run/spool 2>/dev/null || true

if [ -z "$before" ] && has systemctl; then
  if [ $kind = deb ]; then
    systemctl --no-reload enable spoolfs.service || true
  else
    systemctl --no-reload preset spoolfs.service || true
  fi
fi
if systemd_runs; then
  systemctl daemon-reload || true
  if [ -z "$before" ] && [ $kind = deb ]; then
    # It does nothing as long as there is no configuration.
    if has deb-systemd-invoke; then
      deb-systemd-invoke start spoolfs.service || true
    else
      systemctl start spoolfs.service || true
    fi
  fi
fi

# Nothing is restarted: the new version takes over what is mounted. Where it
# cannot, the one before goes on, which is no reason to fail.
if [ -n "$before" ] && ! spoolfs upgrade --all; then
  echo 'spoolfs: installed, but what is named above goes on with the version before; "spoolfs upgrade --all" tries again' >&2
fi
