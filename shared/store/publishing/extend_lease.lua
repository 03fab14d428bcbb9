-- Extend the lease.
--
-- KEYS 1 lease string
-- ARGV 1 token, 2 TTL (ms)
-- Returns 1, or 0 if the lease was lost.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
