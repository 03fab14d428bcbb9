"""The table of further outputs in the configuration of a first start."""

from __future__ import annotations

from string import Template

OUTPUTS = Template("""\
# Further forms and files of what is published; none of them is on by default (worker/README.md).
# [sites.$site.outputs]
# gzip_index = false        # true: the index is sitemap.xml.gz in place of sitemap.xml
# change_list = false       # true: write changelist.xml: pages created, updated and deleted, for
#                             ResourceSync clients, and the two files that lead to it
# change_list_entries = 1000  # newest changes that it keeps
# llms = false              # true: write llms.txt: pages whose events state a title, by section,
#                             with their description; one that others wrote stays
# llms_entries = 500        # the newest of them
# llms_summary = ""         # what the site is, in a sentence or two
# html = false              # true: write sitemap-contents.html and pages of links, for visitors
""")
