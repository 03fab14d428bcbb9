-- Remove answered requests; one that was repeated meanwhile stays.
--
-- KEYS 1 resync zset, or checks:asked zset
-- ARGV 1.. each scope or requester, and its request time when the reconcile or check began (ms)
-- Returns the number removed.
local closed = 0
for i = 1, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    closed = closed + redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
return closed
