"""The configuration of a site: its sections, senders, source and targets, and the files it stands
in.
"""
