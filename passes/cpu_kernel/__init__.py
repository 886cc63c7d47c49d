"""Parts of the passes that write a whole CPU kernel: packing, products, sums and stores."""
