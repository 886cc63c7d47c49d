"""`python -m conv_compiler` is the command `conv-compiler`."""

import sys

from conv_compiler.cli import main

sys.exit(main())
