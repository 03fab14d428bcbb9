"""The configuration, each setting with its default, its parser and the reason of each fault; no
state that changes while a process runs.
"""
