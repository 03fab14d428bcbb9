-- Move one event that keeps failing to the dead letters.
--
-- KEYS 1 inbox stream, 2 dead stream, 3 stats hash (`failed` counts)
-- ARGV 1 group, 2 event id, 3 error, 4 number of attempts
-- Returns 1, or 0 if the event was settled meanwhile.
-- Of an entry that accept.lua did not write, only its fields `e`, `q` and `t` are kept, or without
-- `e` all of it as text: none of its fields may pass for those added here.
-- include lua/preconditions
local MOST = 10000

must_be('stream', KEYS[2])
local found = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])
if #found == 0 then
  return 0
end
local fields, event, known = found[1][2], nil, {}
for i = 1, #fields, 2 do
  if fields[i] == 'e' then
    event = fields[i + 1]
  elseif fields[i] == 'q' or fields[i] == 't' then
    known[fields[i]] = fields[i + 1]
  end
end
if not event then
  event = ''
  for i = 1, #fields do
    if #event < MOST then
      event = event .. string.sub(fields[i], 1, MOST) .. ' '
    end
  end
end
local said = {'id', ARGV[2], 'error', ARGV[3], 'tries', ARGV[4], 'e', event}
for name, value in pairs(known) do
  said[#said + 1], said[#said + 2] = name, value
end
redis.call('XADD', KEYS[2], '*', unpack(said, 1, math.min(#said, 12)))
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
redis.pcall('HINCRBY', KEYS[3], 'failed', 1)
return 1
