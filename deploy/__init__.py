"""Everything that runs sitemapd: the command line and the one-machine set-up."""
