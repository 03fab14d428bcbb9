"""Static files beside the sitemaps, for people; not what is made of a site's pages."""
