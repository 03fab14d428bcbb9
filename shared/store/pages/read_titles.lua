-- Read the titles of some pages: one reply instead of a command for each.
--
-- KEYS 1 inbox, for the slot of the site; titles:<bucket> are of the same
-- ARGV 1 prefix, 2 digests of pages, 8 bytes each, one after the other
-- Returns the title of each page, empty where there is none
local found, prefix, digests = {}, ARGV[1] .. 'titles:', ARGV[2]
for at = 1, #digests, 8 do
  local high, low = string.byte(digests, at, at + 1)
  local bucket = prefix .. string.format('%x', high * 256 + low)
  found[#found + 1] = redis.call('HGET', bucket, string.sub(digests, at + 2, at + 7)) or ''
end
return found
