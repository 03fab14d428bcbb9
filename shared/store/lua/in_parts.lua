-- Pass a list of any length to a command, 1,000 values at a time: Lua passes less than 8,000 in one
-- call. A part of apply.lua; pairs stay together.
--
-- Returns nothing: defines in_parts(values, each), which calls each(value, value, ..).
local PART = 1000

local function in_parts(values, each)
  for i = 1, #values, PART do
    each(unpack(values, i, math.min(i + PART - 1, #values)))
  end
end
