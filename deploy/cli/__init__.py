"""The program `sitemapd`: entry point, list of commands, output; not the commands themselves."""
