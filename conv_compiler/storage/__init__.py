"""Files on disk: whose a folder is, what may be overwritten, and the cache of artifacts."""
