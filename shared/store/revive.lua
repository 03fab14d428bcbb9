-- Put events that failed back into the inbox.
--
-- KEYS 1 dead stream, 2 inbox stream
-- ARGV 1.. ids in the dead stream
-- Returns the new event ids of those that were still there.
local ids = {}
for _, dead in ipairs(ARGV) do
  local found = redis.call('XRANGE', KEYS[1], dead, dead)
  if #found == 1 then
    local fields, event = found[1][2], {}
    for i = 1, #fields, 2 do
      -- What accept.lua writes: the event, whether search engines are not told, its trace.
      if #fields[i] == 1 then
        event[#event + 1], event[#event + 2] = fields[i], fields[i + 1]
      end
    end
    ids[#ids + 1] = redis.call('XADD', KEYS[2], '*', unpack(event))
    redis.call('XDEL', KEYS[1], dead)
  end
end
return ids
