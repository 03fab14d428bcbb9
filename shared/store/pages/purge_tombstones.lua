-- Purge the tombstones of pages and claims that are due.
--
-- KEYS 1 tombs zset
-- ARGV 1 now (ms), 2 maximum number, 3 prefix
-- Returns the number that was due. A page that is listed again keeps its record.
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
local gone = {}
for _, member in ipairs(due) do
  local claim = #member == 9
  local digest = claim and string.sub(member, 2) or member
  if #digest == 8 then
    local bucket = struct.unpack('>I2', digest)
    local key = ARGV[3] .. (claim and 'id:' or 'loc:') .. string.format('%x', bucket)
    local field = string.sub(digest, 3)
    local stored = redis.call('HGET', key, field)
    if stored and ((claim and #stored == 8) or (not claim and string.sub(stored, 7, 9) == '\0\0\0')) then
      gone[#gone + 1] = {key, field}
    end
  end
end
for _, record in ipairs(gone) do
  redis.call('HDEL', record[1], record[2])
end
for _, member in ipairs(due) do
  redis.call('ZREM', KEYS[1], member)
end
return #due
