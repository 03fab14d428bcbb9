-- Read the buckets of pages or claims in turn: one reply instead of one for each of 65,536 hashes.
--
-- KEYS 1 inbox, for the slot of the site; the buckets are of the same
-- ARGV 1 prefix of the bucket names, 2 first bucket, 3 last bucket, 4 number of fields that are
--      enough for one reply
-- Returns the next bucket (after the last: none is left), then for each bucket that is not empty
-- its number, and its fields and values
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
