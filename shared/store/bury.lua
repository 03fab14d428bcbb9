-- Move one event that keeps failing to the dead letters.
--
-- KEYS 1 inbox stream, 2 dead stream, 3 stats hash (`failed` counts)
-- ARGV 1 group, 2 event id, 3 error, 4 how often it was tried
-- Returns 1, or 0 if the event was settled meanwhile.
local found = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])
if #found == 0 then
  return 0
end
local fields = found[1][2]
local said = {'id', ARGV[2], 'error', ARGV[3], 'tries', ARGV[4]}
for i = 1, #fields do
  said[#said + 1] = fields[i]
end
redis.call('XADD', KEYS[2], '*', unpack(said))
redis.call('HINCRBY', KEYS[3], 'failed', 1)
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
return 1
