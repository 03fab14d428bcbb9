"""Wake-ups in, files out."""
