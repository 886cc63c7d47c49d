"""The subcommands of `conv-compiler`: one module each, with `configure(parser)` and `run(args)`."""
