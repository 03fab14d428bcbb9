-- Take one step of a migration: rename some keys of a site.
--
-- KEYS 1 migrating string; the renamed keys are of the same site
-- ARGV 1 token, 2 TTL (ms), then the present and the new name of each key
-- Returns the number of keys renamed, those without a value left out; -1 if the right was lost.
-- An error, before any is renamed, if both names of one have a value.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return -1
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local moved = {}
for i = 3, #ARGV, 2 do
  if redis.call('EXISTS', ARGV[i]) == 1 then
    if redis.call('EXISTS', ARGV[i + 1]) == 1 then
      return redis.error_reply('ERR ' .. ARGV[i] .. ' and ' .. ARGV[i + 1] .. ' both exist: nothing was renamed')
    end
    moved[#moved + 1] = {ARGV[i], ARGV[i + 1]}
  end
end
for _, names in ipairs(moved) do
  redis.call('RENAME', names[1], names[2])
end
return #moved
