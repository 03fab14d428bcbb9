-- Add to a counter: in total, per minute for a day, and per hour for a week. A part of accept.lua,
-- apply.lua and commit_publish.lua.
--
-- Keys of the site: stats (hash: name -> number), pulse:<minute since 1970> and hour:<hour since
-- 1970> (the same, with a TTL).
-- Returns nothing: defines count(prefix, now (ms), name, number). Errors are ignored: a damaged
-- counter must not keep an event from being accepted, applied or published.
local PULSE_S, HOUR_S = 26 * 3600, 8 * 24 * 3600

local function add_to(key, name, number, ttl)
  -- The first count of a name may be the first of its hash, which has no TTL then.
  if redis.pcall('HINCRBY', key, name, number) == tonumber(number) then
    redis.pcall('EXPIRE', key, ttl)
  end
end

local function count(prefix, now, name, number)
  redis.pcall('HINCRBY', prefix .. 'stats', name, number)
  add_to(string.format('%spulse:%.0f', prefix, math.floor(now / 60000)), name, number, PULSE_S)
  add_to(string.format('%shour:%.0f', prefix, math.floor(now / 3600000)), name, number, HOUR_S)
end
