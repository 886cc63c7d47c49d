"""What is to be computed: the convolution, its layouts and its data types."""
