"""Published files of a site: merge, write and keep them in its web root. Decisions about the listed
pages belong to shared/domain.
"""
