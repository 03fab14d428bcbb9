-- Record the published shards, and release the lease.
--
-- KEYS 1 lease string, 2 dirty zset, 3 counters hash, 4 recent stream, 5 held hash, 6 allowed hash
--      7 revisions stream, 8 quarantine hash, 9 stats hash
-- further keys of the site: versions, targets, target:<name>, section:<section>:.., notify:<engine> zset (loc -> now), pulse:
-- ARGV 1 token, 2 prefix, 3 now (ms), 4 most entries in recent, 5 entry for recent, 6 ms since the
--      patches were taken, 7 most revisions, 8 names of the engines to be notified, with a space
--      between them, 9 upper bounds of the classes of waits (ms), likewise, 10 number of files
--      written, 11 number removed, 12 names of the files that changed, of a site with several
--      targets, with a space between them, 13 the target that has them (empty: the site has one
--      target), 14 its other targets, likewise, 15 engines to be notified of files, 16 URLs of the
--      files, likewise, then for each shard:
--      section, number, generation as read, file record (empty: it has none any more),
--      index page, ordinal, line (empty: none), pages moved away as read, number confirmed as read
--      (empty: none), shrink hold (empty: it was published; else `urls reference`),
--      number of lines that changed, these (empty: too many to keep), number of locs to notify,
--      number of blocks, then the locs, then number and bytes of each block (empty: gone)
-- Returns the number of publishes so far; 0 if the lease was lost: another publisher may have
-- published meanwhile and these files may be older than its files, so the shards are dirty again,
-- under a new generation, so that its commit cannot mark them clean.
local mine = redis.call('GET', KEYS[1]) == ARGV[1]
local time = redis.call('TIME')
local redis_now = time[1] * 1000 + math.floor(time[2] / 1000)

-- include lua/count
-- include lua/preconditions
-- include lua/told
-- include lua/versioned

-- Taken patches become pending again; a newer pending patch of the same page wins.
local function give_back(taking, pending)
  if redis.call('EXISTS', taking) == 0 then
    return
  end
  if redis.call('EXISTS', pending) == 0 then
    redis.call('RENAME', taking, pending)
    return
  end
  local patches = redis.call('HGETALL', taking)
  for j = 1, #patches, 2 do
    local newer = redis.call('HGET', pending, patches[j])
    if not newer then
      redis.call('HSET', pending, patches[j], patches[j + 1])
    elseif to_be_told(patches[j + 1]) then
      redis.call('HSET', pending, patches[j], telling(newer))
    end
  end
  redis.call('DEL', taking)
end

local function hold(shard, why)
  local known = redis.call('HGET', KEYS[5], shard)
  local since = known and string.match(known, '^%d+') or string.format('%d', math.floor(ARGV[3] / 1000))
  redis.call('HSET', KEYS[5], shard, since .. ' ' .. why)
end

local function let_go(shard, moved, confirmed)
  redis.call('HDEL', KEYS[5], shard)
  if moved > 0 and redis.call('HINCRBY', KEYS[6], 'moved ' .. shard, -moved) <= 0 then
    redis.call('HDEL', KEYS[6], 'moved ' .. shard)
  end
  if confirmed ~= '' and redis.call('HGET', KEYS[6], 'confirmed ' .. shard) == confirmed then
    redis.call('HDEL', KEYS[6], 'confirmed ' .. shard)
  end
end

-- Count the wait of the longest waiting event of this file.
local function waited(shard)
  local since = redis.call('ZSCORE', KEYS[2], shard)
  if since then
    local ms, at = math.max(0, redis_now - since), 0
    for bound in string.gmatch(ARGV[9], '%d+') do
      at = at + (ms > tonumber(bound) and 1 or 0)
    end
    count(ARGV[2], ARGV[3], 'waited:' .. at, 1)
    count(ARGV[2], ARGV[3], 'waited:ms', ms)
  end
end

local function tell(loc)
  for engine in string.gmatch(ARGV[8], '%S+') do
    redis.call('ZADD', ARGV[2] .. 'notify:' .. engine, 'NX', ARGV[3], loc)
  end
end

-- Read what each shard becomes, and check that all of it can be written.
local done, i = {}, 17
while i <= #ARGV do
  local section, number = ARGV[i], ARGV[i + 1]
  local each = {
    name = ARGV[2] .. 'section:' .. section, shard = section .. '/' .. number, number = number,
    generation = tonumber(ARGV[i + 2]), file = ARGV[i + 3], index = ARGV[2] .. 'index:' .. ARGV[i + 4],
    ordinal = ARGV[i + 5], line = ARGV[i + 6], moved = tonumber(ARGV[i + 7]), confirmed = ARGV[i + 8],
    why = ARGV[i + 9], changed = tonumber(ARGV[i + 10]), lines = ARGV[i + 11], locs = i + 14,
  }
  each.blocks = each.locs + tonumber(ARGV[i + 12])
  i = each.blocks + 2 * tonumber(ARGV[i + 13])
  each.behind = i
  each.pending, each.taking = each.name .. ':pending:' .. number, each.name .. ':taking:' .. number
  each.stored = redis.call('HGET', each.name .. ':shards', number)
  if each.stored then
    each.now, each.urls, each.size, each.at = struct.unpack('>I8I4I8I4', each.stored)
  end
  must_be('hash', each.pending, each.taking, each.name .. ':blocks:' .. number, each.name .. ':files', each.index)
  must_count(KEYS[6], 'moved ' .. each.shard)
  done[#done + 1] = each
end
must_be('zset', KEYS[2])
if ARGV[13] ~= '' then
  must_be('zset', ARGV[2] .. 'versions')
  must_be('hash', ARGV[2] .. 'targets', ARGV[2] .. 'target:' .. ARGV[13])
end
must_count(KEYS[3], 'publishes')
for engine in string.gmatch(ARGV[15], '%S+') do
  must_be('zset', ARGV[2] .. 'notify:' .. engine)
end
must_be('hash', KEYS[5], KEYS[8])
for engine in string.gmatch(ARGV[8], '%S+') do
  must_be('zset', ARGV[2] .. 'notify:' .. engine)
end

local function publish(each)
  redis.call('DEL', each.taking)
  let_go(each.shard, each.moved, each.confirmed)
  waited(each.shard)
  for j = each.locs, each.blocks - 1 do
    tell(ARGV[j])
  end
  if each.changed > 0 then
    redis.pcall('XADD', KEYS[7], 'MAXLEN', '~', ARGV[7], '*', 'shard', each.shard, 'file', each.file,
      'changed', each.changed, 'lines', each.lines)
  end
end

for _, each in ipairs(done) do
  if mine then
    for j = each.blocks, each.behind - 1, 2 do
      if ARGV[j + 1] == '' then
        redis.call('HDEL', each.name .. ':blocks:' .. each.number, ARGV[j])
      else
        redis.call('HSET', each.name .. ':blocks:' .. each.number, ARGV[j], ARGV[j + 1])
      end
    end
    if each.file == '' then
      redis.call('HDEL', each.name .. ':files', each.number)
      redis.call('HDEL', each.index, each.ordinal)
    else
      redis.call('HSET', each.name .. ':files', each.number, each.file)
      redis.call('HSET', each.index, each.ordinal, each.line)
    end
    local clean = each.now == each.generation
    redis.call('HDEL', KEYS[8], each.shard)
    if each.why ~= '' then
      give_back(each.taking, each.pending)
      hold(each.shard, each.why)
      -- Confirmed during the shrink check: check again.
      clean = clean and (redis.call('HGET', KEYS[6], 'confirmed ' .. each.shard) or '') == each.confirmed
    else
      publish(each)
      -- The generation alone does not suffice: patches that a publisher took and never committed
      -- are merged before those that arrived after them, under the generation of both.
      clean = clean and redis.call('EXISTS', each.pending) == 0
    end
    if clean then
      redis.call('ZREM', KEYS[2], each.shard)
    elseif each.why == '' then
      -- Pending patches arrived after the others were taken.
      redis.call('ZADD', KEYS[2], 'XX', redis_now - ARGV[6], each.shard)
    end
  elseif each.stored then
    redis.call('HSET', each.name .. ':shards', each.number,
      struct.pack('>I8I4I8I4', each.now + 1, each.urls, each.size, each.at))
    redis.call('ZADD', KEYS[2], 'NX', ARGV[3], each.shard)
  end
end
if not mine then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('HDEL', KEYS[8], '*')
count(ARGV[2], ARGV[3], 'publishes', 1)
redis.pcall('HINCRBY', KEYS[9], 'written', ARGV[10])
redis.pcall('HINCRBY', KEYS[9], 'removed', ARGV[11])
redis.pcall('XADD', KEYS[4], 'MAXLEN', '~', ARGV[4], '*', 'published', ARGV[5])
-- begin_publish.lua compares both: whoever committed last knows what it wrote.
redis.call('HSET', KEYS[3], 'publisher', ARGV[1])
for engine in string.gmatch(ARGV[15], '%S+') do
  for url in string.gmatch(ARGV[16], '%S+') do
    redis.call('ZADD', ARGV[2] .. 'notify:' .. engine, 'NX', redis_now, url)
  end
end
local publishes = redis.call('HINCRBY', KEYS[3], 'publishes', 1)
if ARGV[13] ~= '' then
  versioned(ARGV[2], KEYS[3], publishes, redis_now, ARGV[12], ARGV[13], ARGV[14])
end
return publishes
