"""Search engines, one module each: requests and the meaning of answers. Queues and back-off belong
to the parent package.
"""
