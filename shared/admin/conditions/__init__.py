"""Conditions of a site that need somebody, each with its remedy. All that hold together are what
shared/admin/attention.py gives. Pure.
"""
