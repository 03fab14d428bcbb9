-- Apply the net changes of one batch of events: all or nothing.
--
-- Every record the decision was based on is compared first; if one has changed since, nothing is
-- written and the caller reads and decides again. So any number of workers may run this at once.
-- Then all changes are computed and checked, and then written, the page records last: if the script
-- still ended half way, the events would be decided again and not be found to be applied already.
--
-- KEYS 1 inbox     stream  settled events are acknowledged and removed
--      2 dirty     zset    shard -> since when (ms)
--      3 tombs     zset    tombstone -> when it may be purged (ms)
--      4 counters  hash    shards: number that ever existed; urls: number of listed pages
--      5 tails     hash    section -> shard, block, fragments and bytes in the block
--      6 recent    stream  event log
-- further keys of the same site are named in keys.py: loc:<bucket>, id:<bucket>; of section:<section>:
-- shards, pending:<n>, taking:<n>; held, allowed, expiry, resync, cluster:<group>, feed, feed:items, stats, pulse:
-- ARGV 1 cmsgpack of {prefix, group, now (ms), since (arrival of the oldest, ms), forget (ms),
--        recent_most, recent (empty: no entry), counted = {[name in stats] = number}, notifies (0, 1),
--        numbering (of the sections, as it was read; the layout is compared by it),
--        sections = {[number] = {name, urls, hard, soft, block_urls, block_size, reuse}},
--        pages = {{digest..}, {before..}, {after..}, {op..}, {payload..}, {section..}, {counts..},
--              {told..}}, columns, because a table of each page takes twice the time; op: P put, D delete,
--              E delete because it expired, T touch, M move to the tail, N none, only compared, F touch, and
--              mark the shard dirty, because its feed item changed; counts: 0 for news, which lists a page
--              again; told: 1 if engines are notified, stored as a lower case op in the patch
--        claims = {{before, after, owner}..}, settled = {event id..}
--        groups = {{name, number, {loc, member, ..}, {loc that left..}}..}
--        coming = {{name, news entry (empty: none)}..}, expiry = {{name, when (ms; 0: never)}..}
--        feed = {{loc, when (ms), item (empty: none)}..}, feed_most, titles = {{digest, title}..} or nil
--        resyncs = {{scope, requested when (ms)}..}}
--      `after` of a page lacks its first six bytes, the place, which only this script assigns
-- Returns the number of records that had changed; 0: applied.
local a = cmsgpack.unpack(ARGV[1])
local NOWHERE = string.rep('\255', 6)
local LAST_BLOCK = 65535
local SHARDS = 1048576

-- include lua/count
-- include lua/in_parts
-- include lua/preconditions
-- include lua/apply_related
-- include lua/told

-- The bucket and the field of a page record (kind `loc:`) or a claim (kind `id:`).
local function bucket(kind, digest)
  local high, low = string.byte(digest, 1, 2)
  return a.prefix .. kind .. string.format('%x', high * 256 + low), string.sub(digest, 3)
end

local of = a.pages
local digests, befores, afters, ops, payloads, sections, counts, tolds = unpack(of, 1, math.min(#of, 8))
local buckets, fields = {}, {}
local conflicts = (redis.call('HGET', KEYS[4], 'numbering') or '') == a.numbering and 0 or 1
for i, digest in ipairs(digests) do
  buckets[i], fields[i] = bucket('loc:', digest)
  if (redis.call('HGET', buckets[i], fields[i]) or '') ~= befores[i] then
    conflicts = conflicts + 1
  end
end
for _, claim in ipairs(a.claims) do
  if (redis.call('HGET', bucket('id:', claim[3])) or '') ~= claim[1] then
    conflicts = conflicts + 1
  end
end
for _, group in ipairs(a.groups) do
  if (redis.call('HGET', a.prefix .. 'cluster:' .. group[1], '') or '') ~= group[2] then
    conflicts = conflicts + 1
  end
end
if conflicts > 0 then
  return conflicts
end

local shards, tails, listed = {}, {}, 0
local records = {}
-- In the order of the batch: `pairs` has none, and ordinals never change.
local touched = {}

local function shard_of(section, number)
  local id = section * SHARDS + number
  if not shards[id] then
    local stored = redis.call('HGET', a.prefix .. 'section:' .. a.sections[section][1] .. ':shards', number)
    local shard = {section = section, number = number, known = stored and true or false,
                   generation = 0, count = 0, size = 0, ordinal = 0, moved = 0, patches = {}}
    if stored then
      shard.generation, shard.count, shard.size, shard.ordinal = struct.unpack('>I8I4I8I4', stored)
    end
    shards[id] = shard
    touched[#touched + 1] = shard
  end
  return shards[id]
end

local function tail_of(section)
  if not tails[section] then
    local stored = redis.call('HGET', KEYS[5], section)
    local tail = {shard = 1, block = 0, count = 0, size = 0}
    if stored then
      tail.shard, tail.block, tail.count, tail.size = struct.unpack('>I4I4I4I4', stored)
    end
    tails[section] = tail
  end
  return tails[section]
end

-- The first shard with room: news comes and goes, and its files keep their names (PROTOCOL W5).
local function reuse(section, length)
  local limits, number = a.sections[section], 1
  while true do
    local shard = shard_of(section, number)
    if shard.count == 0 or (shard.count < limits[2] and shard.size + length <= limits[4]) then
      return shard, 0
    end
    number = number + 1
  end
end

-- Place of a new page: the tail block, the next block, or the next shard.
local function place(section, length)
  local limits = a.sections[section]
  if limits[7] == 1 then
    return reuse(section, length)
  end
  local tail = tail_of(section)
  local shard = shard_of(section, tail.shard)
  local full = tail.count >= limits[5] or (tail.count > 0 and tail.size + length > limits[6])
  if shard.count >= limits[2] or (shard.count > 0 and shard.size + length > limits[4])
      or (full and tail.block == LAST_BLOCK) then
    tail.shard, tail.block, tail.count, tail.size = tail.shard + 1, 0, 0, 0
    shard = shard_of(section, tail.shard)
  elseif full then
    tail.block, tail.count, tail.size = tail.block + 1, 0, 0
  end
  tail.count, tail.size = tail.count + 1, tail.size + length
  return shard, tail.block
end

-- A page may leave one block and enter another of the same shard before anything is published: with
-- the block in its name, `where` in two bytes, neither patch hides the other.
local function patch(shard, where, digest, op, payload, told)
  local patches = shard.patches
  op = told == 1 and string.lower(op) or op
  patches[#patches + 1] = digest .. where
  patches[#patches + 1] = where .. op .. payload
end

-- Return true if `shard` keeps its file: it lists pages, or the shrink guard holds it.
local function stands(shard)
  return shard.count > 0
    or redis.call('HEXISTS', a.prefix .. 'held', a.sections[shard.section][1] .. '/' .. shard.number) == 1
end

-- Return true if the page was removed from `shard` and is still in its published file.
local function still_published(shard, where, digest)
  local name, patched = a.prefix .. 'section:' .. a.sections[shard.section][1], digest .. where
  return redis.call('HEXISTS', name .. ':pending:' .. shard.number, patched) == 1
    or redis.call('HEXISTS', name .. ':taking:' .. shard.number, patched) == 1
end

for i, digest in ipairs(digests) do
  local before, after, op, payload, section, told = befores[i], afters[i], ops[i], payloads[i], sections[i], tolds[i]
  local old_place, old_length = NOWHERE, 0
  local old_section, old_number, where
  if before ~= '' then
    local both, high, low
    both, where, high, low = struct.unpack('>I4c2BI2', before)
    old_length = high * 65536 + low
    old_place = string.sub(before, 1, 6)
    if old_place ~= NOWHERE then
      old_section, old_number = math.floor(both / SHARDS), both % SHARDS
    end
  end
  local new_place = old_place
  if op == 'P' or op == 'M' then
    local length = struct.unpack('>I3', after)
    local limits, stays, shard = a.sections[section], false, nil
    if old_section == section and op == 'P' then
      shard = shard_of(old_section, old_number)
      if old_length > 0 then
        stays = shard.size - old_length + length <= limits[3]
      else
        -- A deleted page returns to its earlier place if the shard keeps its file and has room.
        stays = stands(shard) and shard.count < limits[2] and shard.size + length <= limits[3]
      end
    end
    if not stays then
      if old_length > 0 then
        local left = shard_of(old_section, old_number)
        left.count, left.size, left.moved = left.count - 1, left.size - old_length, left.moved + 1
        patch(left, where, digest, 'D', string.sub(payload, 1, string.find(payload, '</loc>', 1, true) + 5))
      elseif old_section then
        local left = shard_of(old_section, old_number)
        if still_published(left, where, digest) then
          left.moved = left.moved + 1
        end
      end
      local block
      shard, block = place(section, length)
      new_place = struct.pack('>I4I2', section * SHARDS + shard.number, block)
      where = string.sub(new_place, 5)
    end
    if not (stays and old_length > 0) then
      shard.count = shard.count + 1
    end
    shard.size = shard.size + length - (stays and old_length or 0)
    if old_length == 0 then
      listed = listed + counts[i]
    end
    patch(shard, where, digest, 'U', payload, told)
  elseif op == 'D' or op == 'E' then
    local shard = shard_of(old_section, old_number)
    shard.count, shard.size = shard.count - 1, shard.size - old_length
    listed = listed - counts[i]
    if op == 'E' then
      shard.moved = shard.moved + 1
    end
    patch(shard, where, digest, 'D', payload, told)
  elseif op == 'F' then
    shard_of(old_section, old_number).soiled = true
  end
  if op ~= 'N' then
    records[i] = new_place .. after
  end
end

-- Nothing has been written so far, and no write below can fail that was not checked here. Only the
-- event log and counters may: their errors are ignored.
must_be('stream', KEYS[1])
must_be('zset', KEYS[2], KEYS[3])
must_be('hash', KEYS[5])
must_count(KEYS[4], 'shards', 'urls', 'clusters')
sound_beside(a)
for _, shard in ipairs(touched) do
  shard.name = a.sections[shard.section][1] .. '/' .. shard.number
  shard.pending = a.prefix .. 'section:' .. a.sections[shard.section][1] .. ':pending:' .. shard.number
  must_be('hash', shard.pending)
  must_count(a.prefix .. 'allowed', 'moved ' .. shard.name)
end

for _, shard in ipairs(touched) do
  local name = a.sections[shard.section][1]
  if shard.moved > 0 then
    -- Listed in another shard now: no loss to the shrink guard.
    redis.call('HINCRBY', a.prefix .. 'allowed', 'moved ' .. shard.name, shard.moved)
    redis.call('ZADD', KEYS[2], 'LT', a.since, shard.name)
  end
  if #shard.patches > 0 or shard.soiled then
    if not shard.known then
      shard.ordinal = redis.call('HINCRBY', KEYS[4], 'shards', 1) - 1
    end
    if #shard.patches > 0 then
      local patches = shard.patches
      for j = 1, a.notifies * #patches, 2 do
        -- A later patch keeps the mark of an unpublished change that is to be notified.
        local waits = redis.call('HGET', shard.pending, patches[j])
        if waits and to_be_told(waits) then
          patches[j + 1] = telling(patches[j + 1])
        end
      end
      in_parts(patches, function(...)
        redis.call('HSET', shard.pending, ...)
      end)
    end
    redis.call('HSET', a.prefix .. 'section:' .. name .. ':shards', shard.number,
      struct.pack('>I8I4I8I4', shard.generation + 1, shard.count, shard.size, shard.ordinal))
    redis.call('ZADD', KEYS[2], 'LT', a.since, shard.name)
  end
end
for section, tail in pairs(tails) do
  redis.call('HSET', KEYS[5], section, struct.pack('>I4I4I4I4', tail.shard, tail.block, tail.count, tail.size))
end
if listed ~= 0 then
  redis.call('HINCRBY', KEYS[4], 'urls', listed)
end
beside(a)
for _, claim in ipairs(a.claims) do
  local key, field = bucket('id:', claim[3])
  redis.call('HSET', key, field, claim[2])
  if #claim[2] == 8 then
    redis.call('ZADD', KEYS[3], a.forget, 'i' .. claim[3])
  end
end
for i, digest in ipairs(digests) do
  if records[i] then
    redis.call('HSET', buckets[i], fields[i], records[i])
    if string.sub(afters[i], 1, 3) == '\0\0\0' then
      redis.call('ZADD', KEYS[3], a.forget, digest)
    end
  end
end
in_parts(a.settled, function(...)
  redis.call('XACK', KEYS[1], a.group, ...)
  redis.call('XDEL', KEYS[1], ...)
end)
if a.recent ~= '' then
  redis.pcall('XADD', KEYS[6], 'MAXLEN', '~', a.recent_most, '*', 'decided', a.recent)
end
for name, number in pairs(a.counted) do
  count(a.prefix, a.now, name, number)
end
return 0
