-- Take the lease of a site and the patches of some of its shards, and read all that their publish
-- needs: one round trip.
--
-- KEYS 1 lease string, 2 dirty zset, 3 counters hash (`run` is set once), 4 allowed hash
-- ARGV 1 token, 2 TTL of the lease (ms), 3 prefix, 4 identity of this state if it has none,
--      5 maximum number of shards if none are named: those dirty longest, 6 maximum bytes of the
--      fragments of all shards but the first, 7 number of shards that an index file lists,
--      8 number of publishes after which the caller committed what it knows (empty: nothing),
--      9 number of names it knows, 10 the layout that the caller works on, 11 number of named
--      shards, 12 '1' for blocks without patches bare (blocks.py), 13.. section and number of each
--      named shard, then each known name (a shard as in dirty, or the number of an index file) and how many blocks
--      or lines it has, then the shards that are not to be taken unless they are named
-- Returns the token of the lease holder; or {} if there is nothing to do; or {identity of this
-- state, number of publishes, {{section, number, state, patches, blocks, file record, pages moved,
-- number confirmed, 1 if these are only the blocks with patches, else 0} of each shard}, {number of
-- index file, its lines, ..}, 1 if the pass is full, else 0, 1 if what the caller knows is so
-- still, else 0}; nil for what is not there, for known lines, and for blocks that are no hash.
-- Patches that a publisher took and never committed come first, so they are not overwritten.
-- Members of dirty that cannot be a shard's name are removed: a section is a part of a file's name.
-- include lua/preconditions
local LONGEST, STATE_BYTES, MOST_PATCHES, BARE_BYTES = 100, 24, 1000, 10

local function parsed(shard)
  local section, number = string.match(shard, '^([a-z0-9-]+)/([1-9]%d?%d?%d?%d?%d?%d?)$')
  return section and #section <= LONGEST and {section, number}
end

local layout = redis.call('HGET', KEYS[3], 'form')
if layout and layout ~= ARGV[10] then
  return redis.error_reply('LAYOUT the state has layout ' .. layout .. ', not ' .. ARGV[10] .. ': run sitemapd status')
end
local chosen = {}
local most, most_bytes, per_index = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local named = 13 + 2 * ARGV[11]
local behind = named + 2 * ARGV[9]
for i = 13, named - 1, 2 do
  chosen[#chosen + 1] = {ARGV[i], ARGV[i + 1]}
end
if #chosen == 0 then
  local set_aside = {}
  for i = behind, #ARGV do
    set_aside[ARGV[i]] = true
  end
  local others
  repeat
    chosen, others = {}, {}
    for _, shard in ipairs(redis.call('ZRANGE', KEYS[2], 0, most + #ARGV - behind)) do
      local found = parsed(shard)
      if not found then
        others[#others + 1] = shard
      elseif not set_aside[shard] and #chosen < most then
        chosen[#chosen + 1] = found
      end
    end
    for _, other in ipairs(others) do
      redis.call('ZREM', KEYS[2], other)
    end
  until #others == 0
end
if #chosen == 0 then
  return {}
end
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return holder
end

-- The last commit was the caller's: no other has written blocks or lines since.
local run, known = redis.call('HMGET', KEYS[3], 'run', 'publishes', 'publisher'), {}
local same = ARGV[8] ~= '' and run[2] == ARGV[8] and run[3] == ARGV[1]
for i = named, same and behind - 1 or 0, 2 do
  known[ARGV[i]] = tonumber(ARGV[i + 1])
end

-- The numbers of the blocks that these patches change; false for a shard without patches, which is
-- compared with its file, and for many patches.
local function changed(patches)
  if #patches == 0 or #patches > 2 * MOST_PATCHES then
    return false
  end
  local numbers = {}
  for j = 2, #patches, 2 do
    local high, low = string.byte(patches[j], 1, 2)
    if low then
      numbers[string.format('%d', high * 256 + low)] = true
    end
  end
  return numbers
end

-- The blocks of a shard, and 1 if only those with patches: the caller knows all others.
local function read(name, key, patches)
  local numbers = changed(patches)
  if numbers and known[name] and redis.pcall('HLEN', key) == known[name] then
    local found = {}
    for number in pairs(numbers) do
      local block = redis.call('HGET', key, number)
      if block then
        found[#found + 1] = number
        found[#found + 1] = block
      end
    end
    return found, 1
  end
  local found = redis.pcall('HGETALL', key)
  for j = 2, numbers and ARGV[12] == '1' and not found.err and #found or 0, 2 do
    if not numbers[found[j - 1]] then
      found[j] = string.sub(found[j], 1, BARE_BYTES)
    end
  end
  return found, 0
end

-- Read everything, and check that all of it can be taken; the first write follows. A damaged record
-- raises no error: it concerns one shard, and the caller sets that aside (RELIABILITY T35).
local shards, lines, pages, listed, untaken, bytes = {}, {}, {}, {}, {}, 0
local full = #chosen >= most and 1 or 0
for n, shard in ipairs(chosen) do
  local section, number = ARGV[3] .. 'section:' .. shard[1], shard[2]
  local state, ordinal = redis.call('HGET', section .. ':shards', number), 0
  if state and #state == STATE_BYTES then
    local _, _, size, at = struct.unpack('>I8I4I8I4', state)
    bytes, ordinal = bytes + size, at
    if n > 1 and bytes > most_bytes then
      full = 1
      break
    end
  end
  local taking, pending = section .. ':taking:' .. number, section .. ':pending:' .. number
  must_be('hash', taking, pending)
  local source = taking
  if redis.call('EXISTS', taking) == 0 and redis.call('EXISTS', pending) == 1 then
    source = pending
    untaken[#untaken + 1] = {pending, taking}
  end
  local name, patches = shard[1] .. '/' .. number, redis.call('HGETALL', source)
  local blocks, some = read(name, section .. ':blocks:' .. number, patches)
  local allowed = redis.call('HMGET', KEYS[4], 'moved ' .. name, 'confirmed ' .. name)
  shards[#shards + 1] = {
    shard[1], number, state, patches, not blocks.err and blocks,
    redis.call('HGET', section .. ':files', number), allowed[1], allowed[2], some,
  }
  local page = math.floor(ordinal / per_index)
  local readable = not state or #state == STATE_BYTES
  if readable then
    local key = ARGV[3] .. 'index:' .. page
    local count = known[string.format('%d', page)]
    if listed[page] == nil then
      pages[#pages + 1] = page
    end
    listed[page] = listed[page] or #patches == 0 or not count or redis.call('HLEN', key) ~= count
  end
end
for _, page in ipairs(pages) do
  lines[#lines + 1] = page
  lines[#lines + 1] = listed[page] and redis.call('HGETALL', ARGV[3] .. 'index:' .. page)
end

redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('HSETNX', KEYS[3], 'run', ARGV[4])
for _, patches in ipairs(untaken) do
  redis.call('RENAME', patches[1], patches[2])
end
return {run[1] or ARGV[4], run[2] or '0', shards, lines, full, same and 1 or 0}
