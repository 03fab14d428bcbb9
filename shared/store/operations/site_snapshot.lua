-- Read the state of a site at a glance: one reply instead of those of twenty commands.
--
-- KEYS 1 inbox, for the slot of the site; all others are of the same
-- ARGV 1 prefix, 2 group, 3 mark of the files that the caller knows, 4 `nothing`, `signs` or `stats`:
--      what is read besides; for `signs` 5 now (s since 1970), 6 minutes and 7 number of refusals that are
--      looked at, 8 weeks of accepted events, 9 mark of the checks and 10 mark of the accepted events
--      that the caller knows, 11.. engines
-- Returns cmsgpack of {{number of events, accepted ever, last id, first id (empty: none), number
--      delivered}, {publishes, pages, last reconcile, layout, back (both of version.py), 1 if there are sections},
--      {mark, section, its files as HGETALL, ..} (the mark alone, if the caller knows it),
--      {number of dirty files, since when, number of dead letters, resync requests and their times,
--      then as HGETALL paused, quarantine, held, targets} (empty: there is none of all these)};
--      then for `stats` the counters as HGETALL; for `signs`
--      {mark, report, comparison, looks}, {mark, accepted events of each week} (likewise),
--      {{note of a refusal, ..}, {code, number, ..}} (empty: none),
--      {since when each engine is due (empty: nothing waits), ..}, breakers as HGETALL.
local inbox, prefix, group = KEYS[1], ARGV[1], ARGV[2]

-- Before its first event there is no inbox, before its first worker no group.
local function of_inbox(...)
  local reply = redis.pcall(...)
  if not reply.err then
    return reply
  end
  if string.find(reply.err, 'no such key', 1, true) or string.find(reply.err, 'NOGROUP', 1, true) then
    return {}
  end
  error(reply)
end

local said, list = {}, of_inbox('XINFO', 'STREAM', inbox)
for i = 1, #list, 2 do
  said[list[i]] = list[i + 1]
end
local events, last, first, delivered = said['length'] or 0, said['last-generated-id'] or '0-0', '', 0
if events > 0 then
  first = said['first-entry'][1]
  delivered = of_inbox('XPENDING', inbox, group)[1] or 0
end

local counters =
  redis.call('HMGET', prefix .. 'counters', 'publishes', 'urls', 'reconciled', 'form', 'back', 'publisher')
local token = table.remove(counters)

-- The token of the last commit is removed by whatever else changes the files.
local function files()
  local found = {token and (counters[1] or '') .. ' ' .. token or ''}
  if found[1] == '' or found[1] ~= ARGV[3] then
    for _, section in ipairs(redis.call('HKEYS', prefix .. 'sections')) do
      found[#found + 1] = section
      found[#found + 1] = redis.call('HGETALL', prefix .. 'section:' .. section .. ':files')
    end
  end
  return found
end

-- Most sites have none of these: one command instead of eight.
local function exceptions()
  local names = {}
  for i, name in ipairs({'dirty', 'dead', 'resync', 'paused', 'quarantine', 'held', 'targets'}) do
    names[i] = prefix .. name
  end
  if redis.call('EXISTS', unpack(names, 1, math.min(#names, 7))) == 0 then
    return {}
  end
  local dirty, dead, resync, paused, quarantine, held, targets = unpack(names, 1, math.min(#names, 7))
  return {
    redis.call('ZCARD', dirty), redis.call('ZRANGE', dirty, 0, 0, 'WITHSCORES')[2] or '',
    redis.call('XLEN', dead), redis.call('ZRANGE', resync, 0, -1, 'WITHSCORES'),
    redis.call('HGETALL', paused), redis.call('HGETALL', quarantine), redis.call('HGETALL', held),
    redis.call('HGETALL', targets),
  }
end

local state = {{events, said['entries-added'] or 0, last, first, delivered}, counters, files(), exceptions()}
if ARGV[4] ~= 'signs' then
  state[#state + 1] = ARGV[4] == 'stats' and redis.call('HGETALL', prefix .. 'stats') or nil
  return cmsgpack.pack(state)
end

local now = tonumber(ARGV[5])

local function checks()
  local kept = redis.call('HMGET', prefix .. 'checks', 'began', 'compared', 'looks')
  local began, compared, looks = kept[1] or '', kept[2] or '', kept[3] or ''
  -- a comparison begins with its time and its numbers
  local mark = string.format('%s %d %s %s', began, #compared, string.sub(compared, 1, 40), looks)
  if mark == ARGV[9] then
    return {mark}
  end
  return {mark, redis.call('HGET', prefix .. 'checks', 'report') or '', compared, looks}
end

local function accepted()
  local hour = math.floor(now / 3600)
  local mark = string.format('%.0f %s', hour, last)
  if mark == ARGV[10] then
    return {mark}
  end
  local weeks, this = {mark}, math.floor(hour / 168)
  for back = ARGV[8] - 1, 0, -1 do
    local key = string.format('%saccepted:%.0f', prefix, this - back)
    weeks[#weeks + 1] = redis.call('MGET', key)[1] or ''  -- a key of another type is none
  end
  return weeks
end

local function refusals()
  local since = string.format('%.0f', math.floor(now - 60 * ARGV[6]) * 1000)
  local rows = redis.call('XREVRANGE', prefix .. 'refused', '+', since, 'COUNT', ARGV[7])
  if #rows == 0 then
    return {}
  end
  local notes, numbers, codes = {}, {}, {}
  for i, row in ipairs(rows) do
    notes[i] = row[2][1] == 'refused' and row[2][2] or ''
  end
  for back = 0, ARGV[6] do
    local key = string.format('%spulse:%.0f', prefix, math.floor(now / 60) - back)
    local minute = redis.call('HGETALL', key)
    for i = 1, #minute, 2 do
      local code = string.match(minute[i], '^refused:(.*)$')
      if code then
        numbers[code] = (numbers[code] or 0) + minute[i + 1]
      end
    end
  end
  for code, number in pairs(numbers) do
    codes[#codes + 1] = code
    codes[#codes + 1] = number
  end
  return {notes, codes}
end

local due, breakers = {}, {}
for i = 11, #ARGV do
  due[i - 10] = redis.call('ZRANGE', prefix .. 'notify:' .. ARGV[i], 0, 0, 'WITHSCORES')[2] or ''
  breakers = redis.call('HGETALL', prefix .. 'notices:breakers')
end
for _, part in ipairs({checks(), accepted(), refusals(), due, breakers}) do
  state[#state + 1] = part
end
return cmsgpack.pack(state)
