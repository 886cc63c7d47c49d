# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The subcommands of `conv-compiler`: one module each, with `configure(parser)` and `run(args)`.

`EXAMPLE` ends its help. `configure` calls `add_output`, so that all print in the same forms.
"""
