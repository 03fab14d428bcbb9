-- Close a site to all that read or write one layout, and take the right to migrate it.
--
-- KEYS 1 migrating string, 2 counters hash, 3 lease string
-- ARGV 1 token, 2 TTL (ms), 3 form as read, 4 form while it is moved, 5 new numbering, 6 `1` if
--      the site is to stay in the older layout, else empty
-- Returns `begun`; `publishing` if a publisher holds the lease; `changed` if the form is another by
-- now; or the token of the process that migrates it.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return holder
end
if (redis.call('HGET', KEYS[2], 'form') or '') ~= ARGV[3] then
  return 'changed'
end
if redis.call('EXISTS', KEYS[3]) == 1 then
  return 'publishing'
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
-- With another numbering every process reads the layout again before it applies anything.
redis.call('HSET', KEYS[2], 'form', ARGV[4], 'numbering', ARGV[5])
if ARGV[6] == '' then
  redis.call('HDEL', KEYS[2], 'back')
else
  redis.call('HSET', KEYS[2], 'back', ARGV[6])
end
return 'begun'
