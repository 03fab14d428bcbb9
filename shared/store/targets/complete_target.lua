-- Record the pass of a target, and release its lease.
--
-- KEYS 1 lease string, 2 target hash, 3 targets hash, 4 counters hash
-- ARGV 1 token, 2 name of the target, 3 number of publishes that it has, 4 when the pass began (ms),
--      5.. names of the files that it wrote or found equal
-- Returns 1, or 0 if the lease was lost: another may have written older bytes since, so nothing is
-- recorded.
-- include lua/preconditions
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
must_be('hash', KEYS[2], KEYS[3], KEYS[4])
for i = 5, #ARGV do
  redis.call('HDEL', KEYS[2], ARGV[i])
end
redis.call('HSET', KEYS[3], ARGV[2], ARGV[3] .. ' ' .. ARGV[4])
redis.call('HDEL', KEYS[3], ARGV[2] .. ' failing')
if redis.call('HGET', KEYS[4], 'publishes') == ARGV[3] then
  redis.call('HDEL', KEYS[3], ARGV[2] .. ' behind')
else
  -- Of what was published since then it has nothing.
  redis.call('HSET', KEYS[3], ARGV[2] .. ' behind', ARGV[4])
end
return redis.call('DEL', KEYS[1])
