-- Changes besides the page records: groups, expiry, feeds, titles, resync requests. A part of apply.lua.
--
-- Keys of the site: cluster:<group>, counters, coming, expiry, feed, feed:items, titles:<bucket>, resync.
-- Returns nothing: defines beside(a), whose `a` apply.lua describes, and sound_beside(a), an error
-- if beside(a) could not write all of it.
local SCOPES = 1000

-- The bucket and the field of the title of a page, by its digest.
local function title_of(a, digest)
  local high, low = string.byte(digest, 1, 2)
  return a.prefix .. 'titles:' .. string.format('%x', high * 256 + low), string.sub(digest, 3)
end

local function sound_beside(a)
  for _, entry in ipairs(a.titles or {}) do
    must_be('hash', (title_of(a, entry[1])))
  end
  if #a.expiry > 0 then
    must_be('zset', a.prefix .. 'expiry')
  end
  if #a.coming > 0 then
    must_be('hash', a.prefix .. 'coming')
  end
  if #a.feed > 0 then
    must_be('zset', a.prefix .. 'feed')
    must_be('hash', a.prefix .. 'feed:items')
  end
  if #a.resyncs > 0 then
    must_be('zset', a.prefix .. 'resync')
  end
end

local function beside(a)
  for _, group in ipairs(a.groups) do
    local key = a.prefix .. 'cluster:' .. group[1]
    in_parts(group[4], function(...)
      redis.call('HDEL', key, ...)
    end)
    in_parts(group[3], function(...)
      redis.call('HSET', key, ...)
    end)
    redis.call('HSET', key, '', redis.call('HINCRBY', a.prefix .. 'counters', 'clusters', 1))
    if redis.call('HLEN', key) == 1 then
      redis.call('DEL', key)
    end
  end

  for _, entry in ipairs(a.expiry) do
    if entry[2] == 0 then
      redis.call('ZREM', a.prefix .. 'expiry', entry[1])
    else
      redis.call('ZADD', a.prefix .. 'expiry', entry[2], entry[1])
    end
  end

  for _, entry in ipairs(a.coming) do
    if entry[2] == '' then
      redis.call('HDEL', a.prefix .. 'coming', entry[1])
    else
      redis.call('HSET', a.prefix .. 'coming', entry[1], entry[2])
    end
  end

  for _, entry in ipairs(a.feed) do
    if entry[3] == '' then
      redis.call('ZREM', a.prefix .. 'feed', entry[1])
      redis.call('HDEL', a.prefix .. 'feed:items', entry[1])
    else
      redis.call('ZADD', a.prefix .. 'feed', entry[2], entry[1])
      redis.call('HSET', a.prefix .. 'feed:items', entry[1], entry[3])
    end
  end
  if #a.feed > 0 then
    local over = redis.call('ZCARD', a.prefix .. 'feed') - a.feed_most
    for _, loc in ipairs(over > 0 and redis.call('ZRANGE', a.prefix .. 'feed', 0, over - 1) or {}) do
      redis.call('ZREM', a.prefix .. 'feed', loc)
      redis.call('HDEL', a.prefix .. 'feed:items', loc)
    end
  end

  for _, entry in ipairs(a.titles or {}) do
    local key, field = title_of(a, entry[1])
    if entry[2] == '' then
      redis.call('HDEL', key, field)
    else
      redis.call('HSET', key, field, entry[2])
      redis.call('HSET', a.prefix .. 'counters', 'titles', 1)
    end
  end

  for _, scope in ipairs(a.resyncs) do
    redis.call('ZADD', a.prefix .. 'resync', 'GT', scope[2], scope[1])
  end
  if #a.resyncs > 0 and redis.call('ZCARD', a.prefix .. 'resync') > SCOPES then
    -- More scopes are replaced by the whole site, read once; so a sender cannot fill the store.
    local last = redis.call('ZRANGE', a.prefix .. 'resync', -1, -1, 'WITHSCORES')
    redis.call('DEL', a.prefix .. 'resync')
    redis.call('ZADD', a.prefix .. 'resync', last[2], 'site')
  end
end
