-- Extend the lease of a target, and note which of its files are about to be written: they are
-- compared if that is not completed.
--
-- KEYS 1 lease string, 2 target hash
-- ARGV 1 token, 2 TTL (ms), 3.. names
-- Returns 1, or 0 if the lease was lost.
-- include lua/preconditions
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
must_be('hash', KEYS[2])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
for i = 3, #ARGV do
  redis.call('HSET', KEYS[2], ARGV[i], '1')
end
return 1
