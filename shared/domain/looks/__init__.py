"""Looks at pages: what an answer means for the listing of a page, what is kept of it, and how a
page is unlisted and listed again. Pure, like all of shared.domain.
"""
