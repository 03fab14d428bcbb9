-- Mark a site without work as idle, unless work arrived meanwhile.
--
-- KEYS 1 inbox stream, 2 dirty zset, 3 awake string (deleted)
-- Returns 1 if the site is idle now, 0 if there is work.
if redis.call('XLEN', KEYS[1]) > 0 or redis.call('ZCARD', KEYS[2]) > 0 then
  return 0
end
redis.call('DEL', KEYS[3])
return 1
