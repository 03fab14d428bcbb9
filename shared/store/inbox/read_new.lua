-- Read events that no consumer was given, unless processing is paused.
--
-- KEYS 1 inbox stream, 2 paused hash
-- ARGV 1 group, 2 consumer, 3 maximum number of events
-- Returns the paused queues among `events` and `publish`, then the entries as one cmsgpack (empty:
--         none), each an id and its fields: half the time of nested replies. The group is created
--         if there is none.
local paused, found = redis.call('HMGET', KEYS[2], 'events', 'publish'), {}
if paused[1] then
  found[#found + 1] = 'events'
end
if paused[2] then
  found[#found + 1] = 'publish'
end
if paused[1] then
  return {found, ''}
end
local function read()
  return redis.pcall('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', ARGV[3], 'STREAMS', KEYS[1], '>')
end
local reply = read()
if reply and reply.err then
  if not string.find(reply.err, 'NOGROUP', 1, true) then
    return reply
  end
  redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
  reply = read()
end
return {found, reply and cmsgpack.pack(reply[1][2]) or ''}
