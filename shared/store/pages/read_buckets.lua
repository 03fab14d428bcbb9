-- Read the buckets of pages or claims in turn: one reply instead of one for each of 65,536 hashes.
--
-- KEYS 1 inbox, for the slot of the site; the buckets are of the same
-- ARGV 1 what the names of the buckets begin with, 2 the first one, 3 the last one, 4 how many
--      fields are enough for one reply
-- Returns the bucket to go on with (beyond the last: none is left), then of each bucket that holds
-- anything its number, and its fields and values
local found, fields, at = {0}, 0, tonumber(ARGV[2])
while at <= tonumber(ARGV[3]) and fields < tonumber(ARGV[4]) do
  local stored = redis.call('HGETALL', ARGV[1] .. string.format('%x', at))
  if #stored > 0 then
    fields = fields + #stored / 2
    found[#found + 1] = at
    found[#found + 1] = stored
  end
  at = at + 1
end
found[1] = at
return found
