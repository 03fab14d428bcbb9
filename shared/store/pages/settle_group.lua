-- Remove a translation group that other sites were told of from `expiry`.
--
-- KEYS 1 expiry          zset
--      2 cluster:<group> hash
-- ARGV 1 name of the group in `expiry`
--      2 number of the group's last change, as it was told (empty: none)
-- Returns 1; 0 if the group has changed since: nothing is written.
if (redis.call('HGET', KEYS[2], '') or '') ~= ARGV[2] then
  return 0
end
redis.call('ZREM', KEYS[1], ARGV[1])
return 1
