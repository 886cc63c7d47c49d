"""What a compilation leaves: the `.vmfb`, its record and the facts of its kernels."""
