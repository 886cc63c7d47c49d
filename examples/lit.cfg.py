"""Lit: each script here is its own test. Settings are those of the IR tests."""

from pathlib import Path

config = globals()["config"]  # put there by lit
lit_config = globals()["lit_config"]
here = Path(__file__).parent
lit_config.load_config(config, str(here.parent / "tests" / "lit" / "lit.cfg.py"))
config.name = "examples"
config.suffixes = [".py"]
config.excludes = ["lit.cfg.py"]
config.test_source_root = str(here)
