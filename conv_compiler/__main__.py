# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m conv_compiler` is the command `conv-compiler`."""

import sys

from conv_compiler.cli import main

sys.exit(main())
