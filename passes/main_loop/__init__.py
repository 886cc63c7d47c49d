"""Parts of the pass `interleave`: the operations of a GPU kernel's main loop."""
