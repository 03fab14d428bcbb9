-- Close scopes that a reconcile has answered; one that was asked for again meanwhile stays open.
--
-- KEYS 1 resync zset
-- ARGV 1.. each scope, and when it was asked for as the reconcile began (ms)
-- Returns how many were closed.
local closed = 0
for i = 1, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    closed = closed + redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
return closed
