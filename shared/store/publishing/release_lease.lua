-- Release the lease if the caller still holds it.
--
-- KEYS 1 lease string, 2 dirty zset
-- ARGV 1 token, 2 prefix, 3 now (ms), 4.. section and number of each shard that was taken
-- Returns 1; 0 if the lease was lost: then newer files may have been overwritten, so the shards
-- are dirty again, under a new generation, so that no running commit can mark them clean.
-- include lua/preconditions
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
must_be('zset', KEYS[2])
local again = {}
for i = 4, #ARGV, 2 do
  local shards = ARGV[2] .. 'section:' .. ARGV[i] .. ':shards'
  local stored = redis.call('HGET', shards, ARGV[i + 1])
  if stored then
    local generation, rest = struct.unpack('>I8', stored), string.sub(stored, 9)
    again[#again + 1] = {
      shards, ARGV[i + 1], struct.pack('>I8', generation + 1) .. rest, ARGV[i] .. '/' .. ARGV[i + 1],
    }
  end
end
for _, shard in ipairs(again) do
  redis.call('HSET', shard[1], shard[2], shard[3])
  redis.call('ZADD', KEYS[2], 'NX', ARGV[3], shard[4])
end
return 0
