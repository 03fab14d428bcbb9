"""Publishing targets: one interface, a module for each kind, and whose files a target holds. Which
files a site has does not belong here.
"""
