"""Lit: the IR tests. `lit tests/lit`, or a folder or a file of it.

Substitutions: %conv_compiler, %conv_opt and %filecheck, which need no time for imports
(`preloaded.py`); %python, the interpreter that runs lit;
%run_scripts, the compiler's own tool with the scripts of mlir/ loaded, which runs the test's
`@__transform_main`.
"""

import atexit
import importlib
import shutil
import socket
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import lit.formats

config = globals()["config"]  # put there by lit
root = Path(__file__).resolve().parents[2]
scratch = Path(tempfile.mkdtemp(prefix="conv-compiler-lit-"))
atexit.register(shutil.rmtree, scratch, ignore_errors=True)

config.name = "conv_compiler"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(scratch)
# For tests of the host's own code: REQUIRES names an extension as Linux does.
sys.path.insert(0, str(root))
compiler_path = importlib.import_module("conv_compiler.compiler.stages").compiler_path
config.available_features.update(importlib.import_module("conv_compiler.targets.host").host_flags())
# For examples with a library of an extra.
config.available_features.update(name for name in ("torch", "jax") if find_spec(name))
config.environment["CONV_COMPILER_CACHE"] = str(scratch / "cache")
config.environment["PYTHONPATH"] = str(root)
# numpy's threads wait busily for work that none of these commands has.
config.environment["OPENBLAS_NUM_THREADS"] = "1"

python = sys.executable
scripts = ",".join(str(path) for path in sorted((root / "mlir").glob("*.mlir")))
preload = f"transform-preload-library{{transform-library-paths={scripts}}}"

# Substitution to a module's `main()` and its first arguments.
commands = {
    "%conv_compiler": "conv_compiler.cli",
    "%conv_opt": "conv_compiler.opt",
    "%filecheck": "filecheck.main %s",
}
# What commands import when they know what they are asked for.
later = (
    "conv_compiler.build.user_function",
    "conv_compiler.commands.inspect",
    "conv_compiler.compiler.compile",
    "conv_compiler.compiler.normalise",
    "conv_compiler.passes.im2col",
    "conv_compiler.passes.store_slice",
    "conv_compiler.strategies.select",
    "conv_compiler.strategies.transform_library",
    "iree.compiler.dialects.iree_codegen",
    "iree.compiler.passmanager",
)
modules = [*(command.split()[0] for command in commands.values()), *later]
preloaded = Path(__file__).parent / "preloaded.py"
place = str(scratch / "commands")
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
    listener.bind(place)
    listener.listen(64)
    server = subprocess.Popen(
        [python, preloaded, "serve", str(listener.fileno()), *modules],
        stdin=subprocess.PIPE,
        pass_fds=[listener.fileno()],
        env=config.environment,
    )
atexit.register(server.terminate)
config.substitutions += [
    (name, f"{python} -S -E {preloaded} {place} {command}") for name, command in commands.items()
]
config.substitutions += [
    ("%python", python),
    (
        "%run_scripts",
        f"{compiler_path('iree-opt')} "
        f"--pass-pipeline='builtin.module({preload},transform-interpreter)'",
    ),
]
