-- Replace the keys of a site by restored ones, all at one instant.
--
-- KEYS 1 mark string  token of the running restore (deleted)
-- further keys of the same site are found by their prefixes
-- ARGV 1 token, 2 prefix of the site, 3 prefix of the restored keys, 4 replace: 1, or 0 if the site
--      must have no keys
-- Returns the number of restored keys; -1 if another restore has taken over, -2 if the site has
--      keys and must not.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return -1
end
local old, restored, count, cursor = {}, {}, 0, '0'
repeat
  local reply = redis.call('SCAN', cursor, 'COUNT', 10000)
  cursor = reply[1]
  for _, name in ipairs(reply[2]) do
    if string.sub(name, 1, #ARGV[2]) == ARGV[2] then
      old[name] = true
    elseif string.sub(name, 1, #ARGV[3]) == ARGV[3] then
      restored[name] = true
    end
  end
until cursor == '0'
if next(old) and ARGV[4] ~= '1' then
  return -2
end
for name in pairs(restored) do
  local place = ARGV[2] .. string.sub(name, #ARGV[3] + 1)
  -- a key whose TTL has just ended is gone
  if not redis.pcall('RENAME', name, place).err then
    old[place] = nil
    count = count + 1
  end
end
for name in pairs(old) do
  redis.call('UNLINK', name)
end
redis.call('DEL', KEYS[1])
return count
