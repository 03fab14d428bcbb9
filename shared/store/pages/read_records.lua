-- Read the records of some pages and claims: one reply instead of a command for each.
--
-- KEYS 1 inbox, for the slot of the site; loc:<bucket> and id:<bucket> are of the same
-- ARGV 1 prefix, 2 digests of pages, 3 digests of owners, 8 bytes each, one after the other
-- Returns the record of each page, then of each claim; empty where there is none. Then the
--         numbering of sections, and how many it has
local found = {}
for part, kind in ipairs({'loc:', 'id:'}) do
  local digests, prefix = ARGV[part + 1], ARGV[1] .. kind
  for at = 1, #digests, 8 do
    local high, low = string.byte(digests, at, at + 1)
    local bucket = string.format('%x', high * 256 + low)
    found[#found + 1] = redis.call('HGET', prefix .. bucket, string.sub(digests, at + 2, at + 7)) or ''
  end
end
found[#found + 1] = redis.call('HGET', ARGV[1] .. 'counters', 'numbering') or ''
found[#found + 1] = redis.call('HLEN', ARGV[1] .. 'sections')
return found
