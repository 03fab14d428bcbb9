"""What injects faults, one module each; knows nothing of sitemapd, needs Linux and mostly root.

`python -m tests.faults.tools` tries each one for real.
"""
