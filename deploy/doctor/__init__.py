"""What `sitemapd doctor` looks at."""
