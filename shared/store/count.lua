-- Count what happens: in all, and by the minute for a day. A part of accept.lua, apply.lua
-- and commit.lua.
--
-- Keys of the site: stats (hash: name -> number), pulse:<minute since 1970> (the same, with a TTL).
-- Returns nothing: defines count(prefix, now in ms, name, number).
local PULSE_S = 26 * 3600

local function count(prefix, now, name, number)
  local pulse = prefix .. 'pulse:' .. math.floor(now / 60000)
  redis.call('HINCRBY', prefix .. 'stats', name, number)
  redis.call('HINCRBY', pulse, name, number)
  redis.call('EXPIRE', pulse, PULSE_S)
end
