"""Loading compiled kernels and calling them on devices. Never imports the compiler."""
