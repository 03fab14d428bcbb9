"""Targets that follow: each is brought to what a publisher committed with another one. The publish
pass that leads does not belong here.
"""
