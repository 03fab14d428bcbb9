"""The state store: one contract, one Redis implementation, its Lua scripts."""
