-- Take the lease of a site and the patches of some of its shards.
--
-- KEYS 1 lease string, 2 dirty zset, 3 counters hash (`run` is given once)
-- ARGV 1 token, 2 TTL of the lease (ms), 3 prefix, 4 ident of this state if it has none,
--      5 how many shards at most if none are named: those dirty longest,
--      6 how many shards are named, 7.. section and number of each, then the shards (as in dirty)
--      that are not to be taken unless they are named
-- Returns the token of whoever holds the lease; or {} if there is nothing to do; or {ident of this
-- state, number of publishes, then of each shard: section, number, state}.
-- Patches that a publisher took and never committed come first, so nothing is moved over them.
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
  for _, shard in ipairs(redis.call('ZRANGE', KEYS[2], 0, most + #ARGV - behind)) do
    if not set_aside[shard] and #chosen < most then
      chosen[#chosen + 1] = {string.match(shard, '^(.*)/(%d+)$')}
    end
  end
end
if #chosen == 0 then
  return {}
end
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return holder
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('HSETNX', KEYS[3], 'run', ARGV[4])
local reply = redis.call('HMGET', KEYS[3], 'run', 'publishes')
reply[2] = reply[2] or '0'
for _, shard in ipairs(chosen) do
  local section, number = ARGV[3] .. 'section:' .. shard[1], shard[2]
  local taking, pending = section .. ':taking:' .. number, section .. ':pending:' .. number
  if redis.call('EXISTS', taking) == 0 and redis.call('EXISTS', pending) == 1 then
    redis.call('RENAME', pending, taking)
  end
  reply[#reply + 1] = shard[1]
  reply[#reply + 1] = number
  reply[#reply + 1] = redis.call('HGET', section .. ':shards', number) or ''
end
return reply
