-- Accept one delivery: all of its events, or none.
--
-- KEYS 1 inbox  stream  the events are added
--      2 awake  string  set with a TTL if absent: the caller then sends a wake-up
--      3 rate   string  `when debt`, microseconds and seconds: the bucket of the site is full again
--                       `debt` after `when`; its TTL is the debt, and without the key it is full
--      4 paused hash    with a field `intake` (`door` in states of earlier versions), no delivery
--                       is accepted
--      5 stats  hash    `accepted` counts; and in `pulse:` of the minute, `hour:` and `accepted:`
--                       (string: 168 numbers of 4 bytes, the events of each hour of a week)
--      6 seen   string  marks this delivery as received; 2 again for senders that give no id
-- ARGV 1 digest of the body, 2 TTL of seen (s), 3 TTL of awake (ms), 4 most events the inbox may
--      hold (0: any), 5 events per second (0: any), 6 seconds of that rate the bucket holds,
--      7 `1` if engines are not notified of what these events change, 8 trace context
--      (empty: none), 9.. the events
-- Returns {status, first event id, number of events, slept (1: no worker was awake), digest of the
--      body that was accepted first under this id, seconds to wait}
--      status: accepted | duplicate (same id, same body) | conflict (same id, other body) | full
--      (the inbox) | limited (the rate) | closed (intake is paused)
-- include lua/count
-- include lua/preconditions
local first, events, marked = 9, #ARGV - 8, KEYS[6] ~= KEYS[2]
if marked then
  local known = redis.call('GET', KEYS[6])
  if known then
    local digest, id, number = string.match(known, '^(%S*) (%S*) (%d+)$')
    if digest then
      return {digest == ARGV[1] and 'duplicate' or 'conflict', id, tonumber(number), 0, digest, 0}
    end
  end
end
local closed = redis.call('HMGET', KEYS[4], 'intake', 'door')
if closed[1] or closed[2] then
  return {'closed', '', 0, 0, '', 0}
end
local waiting, most = redis.pcall('XLEN', KEYS[1]), tonumber(ARGV[4])
if type(waiting) == 'table' then
  must_be('stream', KEYS[1])
end
if most > 0 and waiting + events > most then
  return {'full', '', 0, 0, '', 0}
end
local rate, size, paid = tonumber(ARGV[5]), tonumber(ARGV[6]), nil
if rate > 0 then
  local time = redis.call('TIME')
  local now, cost, debt = time[1] * 1000000 + time[2], events / rate, 0
  local known = redis.call('GET', KEYS[3])
  if known then
    local since, owed = string.match(known, '^(%d+) (%d+%.?%d*)$')
    since, owed = tonumber(since or now), tonumber(owed or 0)
    -- After a clock was set back, the debt is counted from the new time.
    debt = math.max(0, owed - math.max(0, now - since) / 1000000)
    if now < since then
      redis.call('SET', KEYS[3], string.format('%.0f %.6f', now, debt), 'KEEPTTL')
    end
  end
  -- At least one event always fits into a full bucket, and so does a delivery larger than it.
  local wait = debt + cost - math.max(size, cost)
  if wait > 0.000001 then
    return {'limited', '', 0, 0, '', math.ceil(wait)}
  end
  debt = debt + cost
  paid = {string.format('%.0f %.6f', now, debt), math.ceil(debt * 1000)}
end
local marks = {}
for i, name in ipairs({'q', 't'}) do
  if ARGV[6 + i] ~= '' then
    marks[#marks + 1], marks[#marks + 2] = name, ARGV[6 + i]
  end
end
local id = ''
for i = first, #ARGV do
  local added = redis.call('XADD', KEYS[1], '*', 'e', ARGV[i], unpack(marks, 1, math.min(#marks, 4)))
  id = id == '' and added or id
end
if paid then
  redis.call('SET', KEYS[3], paid[1], 'PX', paid[2])
end
local prefix = string.match(KEYS[5], '^(.*)stats$')
local now = tonumber(string.match(id, '^%d+'))
count(prefix, now, 'accepted', events)
-- Of each hour for five weeks, in one string a week: the habit of the senders of many sites is read
-- at once. As above, a damaged counter keeps no event out.
local hour = math.floor(now / 3600000)
local week = string.format('%saccepted:%.0f', prefix, math.floor(hour / 168))
local added = redis.pcall('BITFIELD', week, 'OVERFLOW', 'SAT', 'INCRBY', 'u32', '#' .. hour % 168, events)
if added[1] == events then
  redis.pcall('EXPIRE', week, 5 * 7 * 24 * 3600)
end
if marked then
  redis.call('SET', KEYS[6], ARGV[1] .. ' ' .. id .. ' ' .. events, 'EX', ARGV[2])
end
local slept = redis.call('SET', KEYS[2], '1', 'NX', 'PX', ARGV[3])
return {'accepted', id, events, slept and 1 or 0, ARGV[1], 0}
