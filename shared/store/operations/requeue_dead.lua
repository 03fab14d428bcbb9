-- Move dead letters back into the inbox.
--
-- KEYS 1 dead stream, 2 inbox stream
-- ARGV 1.. ids in the dead stream
-- Returns the new event ids of those that still existed.
-- include lua/preconditions
must_be('stream', KEYS[2])
local letters = {}
for _, dead in ipairs(ARGV) do
  local found = redis.call('XRANGE', KEYS[1], dead, dead)
  if #found == 1 then
    letters[#letters + 1] = found[1]
  end
end
local ids = {}
for _, letter in ipairs(letters) do
  local fields, event = letter[2], {}
  for i = 1, #fields, 2 do
    -- As accept.lua writes: the event, the mark against notifications, the trace context.
    if (fields[i] == 'e' or fields[i] == 'q' or fields[i] == 't') and #event < 6 then
      event[#event + 1], event[#event + 2] = fields[i], fields[i + 1]
    end
  end
  if #event > 0 then
    ids[#ids + 1] = redis.call('XADD', KEYS[2], '*', unpack(event, 1, math.min(#event, 6)))
    redis.call('XDEL', KEYS[1], letter[1])
  end
end
return ids
