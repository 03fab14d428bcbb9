"""Conditions of sites that need an administrator, the lifecycle of an alert, and its message, as
pure decisions; nothing is read or sent here.
"""
