"""State of the publishing targets of a site, which of its publishes each has; not the files."""
