"""Entries of CMSes as pages: their addresses, ids and members.

Adapters of the webhook and readers of the worker call the same functions, so that an event and a
reconcile agree about a page. Nothing here asks a CMS or reads a request.
"""
