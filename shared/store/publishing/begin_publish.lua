-- Take the lease of a site and the patches of some of its shards.
--
-- KEYS 1 lease string, 2 dirty zset, 3 counters hash (`run` is set once)
-- ARGV 1 token, 2 TTL of the lease (ms), 3 prefix, 4 identity of this state if it has none,
--      5 maximum number of shards if none are named: those dirty longest,
--      6 number of named shards, 7.. section and number of each, then the shards (as in dirty)
--      that are not to be taken unless they are named
-- Returns the token of the lease holder; or {} if there is nothing to do; or {identity of this
-- state, number of publishes, then for each shard: section, number, state}.
-- Patches that a publisher took and never committed come first, so they are not overwritten.
-- Members of dirty that cannot be a shard's name are removed: a section is a part of a file's name.
-- include lua/preconditions
local LONGEST = 100

local function parsed(shard)
  local section, number = string.match(shard, '^([a-z0-9-]+)/([1-9]%d?%d?%d?%d?%d?%d?)$')
  return section and #section <= LONGEST and {section, number}
end

local chosen = {}
local most, behind = tonumber(ARGV[5]), 7 + 2 * ARGV[6]
for i = 7, behind - 1, 2 do
  chosen[#chosen + 1] = {ARGV[i], ARGV[i + 1]}
end
if #chosen == 0 then
  local set_aside = {}
  for i = behind, #ARGV do
    set_aside[ARGV[i]] = true
  end
  local others
  repeat
    chosen, others = {}, {}
    for _, shard in ipairs(redis.call('ZRANGE', KEYS[2], 0, most + #ARGV - behind)) do
      local found = parsed(shard)
      if not found then
        others[#others + 1] = shard
      elseif not set_aside[shard] and #chosen < most then
        chosen[#chosen + 1] = found
      end
    end
    for _, other in ipairs(others) do
      redis.call('ZREM', KEYS[2], other)
    end
  until #others == 0
end
if #chosen == 0 then
  return {}
end
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return holder
end
local reply = redis.call('HMGET', KEYS[3], 'run', 'publishes')
reply[1], reply[2] = reply[1] or ARGV[4], reply[2] or '0'
local aside = {}
for _, shard in ipairs(chosen) do
  local section, number = ARGV[3] .. 'section:' .. shard[1], shard[2]
  local taking, pending = section .. ':taking:' .. number, section .. ':pending:' .. number
  must_be('hash', taking, pending)
  if redis.call('EXISTS', taking) == 0 and redis.call('EXISTS', pending) == 1 then
    aside[#aside + 1] = {pending, taking}
  end
  reply[#reply + 1] = shard[1]
  reply[#reply + 1] = number
  local state = redis.call('HGET', section .. ':shards', number)
  -- An empty record is damaged; an empty reply stands for an unknown shard.
  reply[#reply + 1] = state == '' and '?' or state or ''
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('HSETNX', KEYS[3], 'run', ARGV[4])
for _, patches in ipairs(aside) do
  redis.call('RENAME', patches[1], patches[2])
end
return reply
