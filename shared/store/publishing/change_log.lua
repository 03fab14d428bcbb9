-- Append the changes of a publish to the change log, and drop the oldest beyond its limit.
--
-- KEYS 1 changes list, 2 changes:since string
-- ARGV 1 most changes, 2 now (s since 1970), 3 '1' if changes of this publish are unknown: what came
--      before is dropped, 4.. each change without its time, oldest first
-- Returns {since, changes}: all changes from `since` (s) on are there, each with its time before it.
-- A dropped change takes those of the same second with it, so that `since` tells the whole truth.
-- include lua/preconditions
-- include lua/in_parts
local LATEST = 253402300799

must_be('list', KEYS[1])
must_be('string', KEYS[2])

-- The time of a change; 0 of a damaged one, beyond the year 9999 for example.
local function time_of(change)
  local found = tonumber(string.match(change or '', '^%d+')) or 0
  return found <= LATEST and found or 0
end

local since = tonumber(redis.call('GET', KEYS[2]) or '')
local now = math.max(tonumber(ARGV[2]), time_of(redis.call('LINDEX', KEYS[1], -1)), since or 0)
if ARGV[3] == '1' then
  redis.call('DEL', KEYS[1])
  since = now + 1
else
  since = since or now
  local new = {}
  for i = 4, #ARGV do
    new[#new + 1] = string.format('%d ', now) .. ARGV[i]
  end
  in_parts(new, function(...)
    redis.call('RPUSH', KEYS[1], ...)
  end)
  local over = redis.call('LLEN', KEYS[1]) - ARGV[1]
  if over > 0 then
    local last = time_of(redis.call('LINDEX', KEYS[1], over - 1))
    redis.call('LTRIM', KEYS[1], over, -1)
    while redis.call('LLEN', KEYS[1]) > 0 and time_of(redis.call('LINDEX', KEYS[1], 0)) <= last do
      redis.call('LPOP', KEYS[1])
    end
    since = math.max(since, last + 1)
  end
end
redis.call('SET', KEYS[2], string.format('%d', since))
return {string.format('%d', since), redis.call('LRANGE', KEYS[1], 0, -1)}
