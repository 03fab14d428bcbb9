-- Record what was published, and give the lease back.
--
-- KEYS 1 lease string, 2 dirty zset, 3 counters hash, 4 recent stream
-- ARGV 1 token, 2 prefix, 3 now (ms), 4 most entries in recent, 5 what to say there, then of each shard:
--      section, number, generation as read, file record (empty: it has none any more),
--      index page, ordinal, line (empty: none), number of blocks, then number and bytes of each
--      (empty: no such block any more)
-- Returns the number of publishes so far; 0 if the lease was lost: then somebody else may have
-- published meanwhile and these files may be older than theirs, so the shards are dirty again,
-- under a new generation, so that the other's commit cannot call them clean.
local mine = redis.call('GET', KEYS[1]) == ARGV[1]
local i = 6
while i <= #ARGV do
  local section, number, generation, file = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), ARGV[i + 3]
  local page, ordinal, line, blocks = ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], tonumber(ARGV[i + 7])
  i = i + 8
  local name, shard = ARGV[2] .. section, section .. '/' .. number
  local stored = redis.call('HGET', name .. ':shards', number)
  if mine then
    for j = i, i + 2 * blocks - 1, 2 do
      if ARGV[j + 1] == '' then
        redis.call('HDEL', name .. ':blocks:' .. number, ARGV[j])
      else
        redis.call('HSET', name .. ':blocks:' .. number, ARGV[j], ARGV[j + 1])
      end
    end
    redis.call('DEL', name .. ':taking:' .. number)
    if file == '' then
      redis.call('HDEL', name .. ':files', number)
      redis.call('HDEL', ARGV[2] .. 'index:' .. page, ordinal)
    else
      redis.call('HSET', name .. ':files', number, file)
      redis.call('HSET', ARGV[2] .. 'index:' .. page, ordinal, line)
    end
    -- The generation alone is not enough: patches that a publisher took and never committed are
    -- merged before those that came in after them, under the generation of both.
    if stored and struct.unpack('>I8', stored) == generation
        and redis.call('EXISTS', name .. ':pending:' .. number) == 0 then
      redis.call('ZREM', KEYS[2], shard)
    end
  elseif stored then
    local g, count, size, o = struct.unpack('>I8I4I8I4', stored)
    redis.call('HSET', name .. ':shards', number, struct.pack('>I8I4I8I4', g + 1, count, size, o))
    redis.call('ZADD', KEYS[2], 'NX', ARGV[3], shard)
  end
  i = i + 2 * blocks
end
if not mine then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[4], '*', 'published', ARGV[5])
return redis.call('HINCRBY', KEYS[3], 'publishes', 1)
