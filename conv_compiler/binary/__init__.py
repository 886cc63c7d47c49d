"""Files of machine code, checked before anything is read from them."""
