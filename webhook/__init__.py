"""HTTP in, change events out."""
