-- Accept one delivery: all of its events, or none.
--
-- KEYS 1 inbox  stream  the events are added
--      2 awake  string  set with a TTL where it was not: the caller then wakes a worker
--      3 seen   string  remembers this delivery; left out for senders that give no id
-- ARGV 1 digest of the body, 2 TTL of seen (s), 3 TTL of awake (ms), 4 most events the inbox may
--      hold (0: any), 5.. the events
-- Returns {status, first event id, number of events, slept (1: nobody was awake), digest of the
--      body that was accepted first under this id}
--      status: accepted | duplicate (same id, same body) | conflict (same id, other body) | full
local first, count = 5, #ARGV - 4
if KEYS[3] then
  local known = redis.call('GET', KEYS[3])
  if known then
    local digest, id, number = string.match(known, '^(%S*) (%S*) (%d+)$')
    return {digest == ARGV[1] and 'duplicate' or 'conflict', id, tonumber(number), 0, digest}
  end
end
local most = tonumber(ARGV[4])
if most > 0 and redis.call('XLEN', KEYS[1]) + count > most then
  return {'full', '', 0, 0, ''}
end
local id = ''
for i = first, #ARGV do
  local added = redis.call('XADD', KEYS[1], '*', 'e', ARGV[i])
  id = id == '' and added or id
end
if KEYS[3] then
  redis.call('SET', KEYS[3], ARGV[1] .. ' ' .. id .. ' ' .. count, 'EX', ARGV[2])
end
local slept = redis.call('SET', KEYS[2], '1', 'NX', 'PX', ARGV[3])
return {'accepted', id, count, slept and 1 or 0, ARGV[1]}
