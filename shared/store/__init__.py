"""All state in Redis: keys, client, Lua scripts and a package for each kind of state; no HTTP and
no files.
"""
