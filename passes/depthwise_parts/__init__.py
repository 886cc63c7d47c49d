"""Parts of the pass `depthwise`: strips of output pixels and their arithmetic."""
