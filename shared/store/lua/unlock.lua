-- Release a lock if the caller still holds it.
--
-- KEYS 1 lock string
-- ARGV 1 token
-- Returns 1, or 0 if the lock was lost.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
