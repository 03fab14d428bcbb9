#!/bin/sh
# Starts the Redis of this pod as the sentinels want it: as the master, or as a replica of the master.
set -eu
umask 077
password=$(sed -n 's/^masterauth //p' /etc/redis/replication.conf)

# The master that two sentinels name.
named() {
  for n in 0 1 2; do
    timeout 2 valkey-cli -h "sentinel-$n" -p 26379 \
      sentinel get-master-addr-by-name sitemapd 2>/dev/null | head -n 1
  done | grep -x 'redis-[012]' | sort | uniq -d
}

# Whether a Redis answers, and holds nothing.
empty() {
  found=$(REDISCLI_AUTH=$password timeout 2 valkey-cli --user sentinel -h "$1" info keyspace 2>/dev/null || :)
  case $found in *db0:*) return 1 ;; *"# Keyspace"*) return 0 ;; *) return 1 ;; esac
}

# Whether all others are empty.
first_start() {
  for other in redis-0 redis-1 redis-2; do
    [ "$other" = "$POD" ] || empty "$other" || return 1
  done
}

master=$(named)
if [ -z "$master" ] && [ -e /data/redis.conf ]; then
  master=$(sed -n 's/^replicaof \([^ ]*\) .*/\1/p' /data/redis.conf)
  master=${master:-$POD}
fi
master=${master:-redis-0}
# A master on a volume that was lost would empty its replicas: the sentinels are left to name another.
while [ "$master" = "$POD" ] && [ ! -e /data/appendonlydir ] && ! first_start; do
  echo "no data here, and the others have some or do not answer: waiting for another master"
  sleep 1
  again=$(named)
  master=${again:-$master}
done
{
  cat /etc/sitemapd/redis.conf /etc/redis/replication.conf
  echo "replica-announce-ip $POD"
  [ "$master" = "$POD" ] || echo "replicaof $master 6379"
} > /data/new.conf
mv /data/new.conf /data/redis.conf
exec valkey-server /data/redis.conf
