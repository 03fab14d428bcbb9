-- Record which files a publish changed, that one target has them, and since when the others lack
-- them. A part of commit_publish.lua.
--
-- Returns nothing: defines versioned(prefix, key of the counters, number of the publish, now (ms),
-- changed files, the target that has them, the others), names with a space between them.
local function versioned(prefix, counters, publishes, now, changed, own, others)
  local versions, targets = prefix .. 'versions', prefix .. 'targets'
  -- Publishes of a time with one target were not recorded: whoever is that old compares all files.
  if redis.call('HGET', counters, 'versioned') ~= string.format('%d', publishes - 1) then
    redis.call('HSET', counters, 'versions_from', publishes)
  end
  redis.call('HSET', counters, 'versioned', publishes)
  for name in string.gmatch(changed, '%S+') do
    redis.call('ZADD', versions, publishes, name)
    redis.call('HDEL', prefix .. 'target:' .. own, name)
  end
  redis.call('HSET', targets, own, string.format('%d %.0f', publishes, now))
  redis.call('HDEL', targets, own .. ' failing', own .. ' behind')
  for other in string.gmatch(others, '%S+') do
    redis.call('HSETNX', targets, other .. ' behind', string.format('%.0f', now))
  end
end
