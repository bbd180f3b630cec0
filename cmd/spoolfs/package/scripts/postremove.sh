#!/bin/sh
# After a removal: "remove" or "purge" of dpkg, or the number of versions that are
# left, of rpm. Messages belong to who has written them, and are never deleted
# here, not even by a purge.
set -e

case "$1" in
remove | purge | 0) ;;
*) exit 0 ;;
esac

if [ "$1" = purge ]; then
  rm -f /etc/systemd/system/*.wants/spoolfs.service /etc/systemd/system/*.wants/spoolfs@*.service
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
rmdir /run/spool 2>/dev/null || true

for store in /var/lib/spoolfs /var/lib/spoolfs-*; do
  if [ -e "$store/FORMAT" ]; then
    echo "spoolfs: the store $store is kept, with all messages that are not published: \"spoolfs drain --store=$store\" publishes them, from another installation, too"
  fi
done
if [ -d /etc/spoolfs ]; then
  echo "spoolfs: the configuration in /etc/spoolfs is kept"
fi
