-- Read what a target lacks: the files that publishes have changed since its last pass, and the lines
-- of their indexes, as they are at one moment.
--
-- KEYS 1 counters hash, 2 versions zset, 3 target hash, 4 targets hash
-- ARGV 1 prefix, 2 name of the target, 3 number of shards that an index file lists
-- Returns {identity of this state, number of publishes, now (ms), 1 if the target is too far behind
-- to be told what changed: all files, 0 if not, changed files, files in doubt, {number of index
-- file, its lines, ..}}.
local counted = redis.call('HMGET', KEYS[1], 'run', 'publishes', 'versions_from', 'shards')
local has = redis.call('HGET', KEYS[4], ARGV[2])
has = has and tonumber(string.match(has, '^%d+')) or -1
local publishes, from = tonumber(counted[2] or 0), tonumber(counted[3] or 0)
local whole = has + 1 < from or has < 0 or has > publishes
local changed = whole and {} or redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. has, '+inf')
local doubts, pages, lines = redis.call('HKEYS', KEYS[3]), {}, {}
if whole then
  for page = 0, math.ceil(tonumber(counted[4] or 0) / ARGV[3]) - 1 do
    pages[string.format('%d', page)] = true
  end
else
  for _, names in ipairs({changed, doubts}) do
    for _, name in ipairs(names) do
      local page = string.match(name, '^index:(%d+)$')
      if page then
        pages[page] = true
      end
    end
  end
end
for page in pairs(pages) do
  lines[#lines + 1] = page
  lines[#lines + 1] = redis.call('HGETALL', ARGV[1] .. 'index:' .. page)
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
return {counted[1] or '', tostring(publishes), now, whole and 1 or 0, changed, doubts, lines}
