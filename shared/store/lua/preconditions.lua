-- Raise an error before the first write for writes that would fail: Redis does not roll back a
-- script that fails half way (RELIABILITY F28). A part of every script that writes to several keys.
--
-- Returns nothing: defines must_be(type, key, ..), an error unless each key has this type or does
-- not exist, and must_count(key, field, ..), an error unless HINCRBY can add to these fields.
local function must_be(kind, ...)
  for _, key in ipairs({...}) do
    local found = redis.call('TYPE', key).ok
    if found ~= kind and found ~= 'none' then
      error({err = 'WRONGTYPE ' .. key .. ' is a ' .. found .. ', not a ' .. kind .. ': nothing was written'})
    end
  end
end

local function must_count(key, ...)
  local fields = {...}
  local values = redis.call('HMGET', key, unpack(fields, 1, math.min(#fields, 100)))
  for n, field in ipairs(fields) do
    local stored = values[n]
    if stored and not string.match(stored, '^%-?%d%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?$') then
      error({err = 'ERR ' .. field .. ' of ' .. key .. ' is no number: nothing was written'})
    end
  end
end
