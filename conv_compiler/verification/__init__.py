"""Whether a kernel is right: data, reference, tolerance and comparison."""
