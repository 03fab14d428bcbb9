-- Add to a counter: in total, and per minute for a day. A part of accept.lua, apply.lua and
-- commit_publish.lua.
--
-- Keys of the site: stats (hash: name -> number), pulse:<minute since 1970> (the same, with a TTL).
-- Returns nothing: defines count(prefix, now (ms), name, number). Errors are ignored: a damaged
-- counter must not keep an event from being accepted, applied or published.
local PULSE_S = 26 * 3600

local function count(prefix, now, name, number)
  local pulse = prefix .. 'pulse:' .. math.floor(now / 60000)
  redis.pcall('HINCRBY', prefix .. 'stats', name, number)
  redis.pcall('HINCRBY', pulse, name, number)
  redis.pcall('EXPIRE', pulse, PULSE_S)
end
