-- Repair inconsistent state: write some fields if all values the repair is based on are unchanged.
--
-- KEYS 1 lease    string  of the publisher
--      2 counters hash    `publisher` is deleted: nobody knows the blocks and lines any more
-- ARGV 1 cmsgpack of {token (empty: no lease is needed), compared = {{key, field, value}..},
--        fields = {{key, field, value}..}, scores = {{key, member, score}..}}; keys of the same
--        site, each with its prefix. An empty value: the field does not exist, or is deleted. An
--        empty score: the member is removed
-- Returns 1; 0 if the lease is another's, or if a compared value has changed: nothing is written.
local a = cmsgpack.unpack(ARGV[1])
if a.token ~= '' and redis.call('GET', KEYS[1]) ~= a.token then
  return 0
end
for _, each in ipairs(a.compared) do
  if (redis.call('HGET', each[1], each[2]) or '') ~= each[3] then
    return 0
  end
end
-- Written keys are read first: a key of the wrong type fails before anything is written.
redis.call('HEXISTS', KEYS[2], 'publisher')
for _, each in ipairs(a.fields) do
  redis.call('HEXISTS', each[1], each[2])
end
for _, each in ipairs(a.scores) do
  redis.call('ZSCORE', each[1], each[2])
end
redis.call('HDEL', KEYS[2], 'publisher')
for _, each in ipairs(a.fields) do
  if each[3] == '' then
    redis.call('HDEL', each[1], each[2])
  else
    redis.call('HSET', each[1], each[2], each[3])
  end
end
for _, each in ipairs(a.scores) do
  if each[3] == '' then
    redis.call('ZREM', each[1], each[2])
  else
    redis.call('ZADD', each[1], each[3], each[2])
  end
end
return 1
