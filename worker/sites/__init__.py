"""Sites of one worker process: what works on each of them, their upkeep and their layouts. What
brings them work is worker/runtime.py.
"""
