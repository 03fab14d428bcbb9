-- Move events out of the inbox into the list of a purge.
--
-- KEYS 1 inbox stream, 2 list they are kept in (with a TTL), 3 purges zset
-- ARGV 1 group, 2 id of the last one, 3 maximum number, 4 TTL (s), 5 now (ms): name of the purge
-- Returns the number removed. An entry that holds no event is removed and not kept.
-- include lua/preconditions
must_be('list', KEYS[2])
must_be('zset', KEYS[3])
local found = redis.call('XRANGE', KEYS[1], '-', ARGV[2], 'COUNT', ARGV[3])
for _, event in ipairs(found) do
  for i = 1, #event[2], 2 do
    if event[2][i] == 'e' then
      redis.call('RPUSH', KEYS[2], event[2][i + 1])
      break
    end
  end
  redis.call('XACK', KEYS[1], ARGV[1], event[1])
  redis.call('XDEL', KEYS[1], event[1])
end
if #found > 0 then
  redis.call('EXPIRE', KEYS[2], ARGV[4])
  redis.call('ZADD', KEYS[3], ARGV[5], ARGV[5])
end
return #found
