#!/bin/sh
# Starts a sentinel; what it learns it writes to its file.
set -eu
umask 077
password=$(sed -n 's/^sentinel auth-pass sitemapd //p' /etc/redis/sentinel.conf)

# The master that another sentinel names; else a Redis that is followed; else the first.
master() {
  for n in 0 1 2; do
    timeout 2 valkey-cli -h "sentinel-$n" -p 26379 \
      sentinel get-master-addr-by-name sitemapd 2>/dev/null | head -n 1
  done | grep -x 'redis-[012]' || :
  for n in 0 1 2; do
    REDISCLI_AUTH=$password timeout 2 valkey-cli --user sentinel -h "redis-$n" \
      info replication 2>/dev/null | grep -q '^connected_slaves:[1-9]' && echo "redis-$n"
  done
  echo redis-0
}

if [ ! -e /data/sentinel.conf ]; then
  {
    echo "port 26379"
    echo "dir /data"
    echo "protected-mode no"
    # Names: those of Services stay when a pod moves to another address.
    echo "sentinel resolve-hostnames yes"
    echo "sentinel announce-hostnames yes"
    echo "sentinel announce-ip $POD"
    echo "sentinel announce-port 26379"
    echo "sentinel monitor sitemapd $(master | head -n 1) 6379 2"
    echo "sentinel down-after-milliseconds sitemapd 5000"
    # Sentinels whose votes were split wait twice this long before they vote again.
    echo "sentinel failover-timeout sitemapd 10000"
    cat /etc/redis/sentinel.conf
  } > /data/new.conf
  mv /data/new.conf /data/sentinel.conf
fi
exec valkey-sentinel /data/sentinel.conf
