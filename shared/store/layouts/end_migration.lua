-- End a step from one layout to another, and give the right to migrate back.
--
-- KEYS 1 migrating string, 2 counters hash
-- ARGV 1 token, then fields of counters and their values
-- Returns 1; 0 if the right was lost: nothing is written.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
end
redis.call('DEL', KEYS[1])
return 1
