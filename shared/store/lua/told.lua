-- Mark of a stored patch (block number, op, payload) whose change is to be notified once it is
-- published: an op in lower case. A part of apply.lua and commit_publish.lua.
--
-- Returns nothing: defines to_be_told(patch), and telling(patch), the patch with that mark.
local function to_be_told(patch)
  return (string.byte(patch, 3) or 0) >= 97
end

local function telling(patch)
  return string.sub(patch, 1, 2) .. string.lower(string.sub(patch, 3, 3)) .. string.sub(patch, 4)
end
