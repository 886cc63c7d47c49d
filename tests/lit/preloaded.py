#!/usr/bin/env python3
"""Runs a command, the `main()` of a module, in a fork of a process that has imported the module.

    preloaded.py SOCKET MODULE [ARGS...]
    preloaded.py serve DESCRIPTOR MODULES...     of a listening socket

Imports are most of a short command's time, and the IR tests run hundreds of them. A command has its
caller's folder, environment and streams, and its exit code is the caller's. The server ends with
the process that holds the other end of its stdin.
"""

import marshal
import os
import socket
import sys

# A message holds arguments and environment: as long as a command line may be.
MESSAGE_BYTES = 1 << 17


def call(path, module, arguments):
    """Exit code of a command that the server at `path` runs; 1, and a line, where it died."""
    request = marshal.dumps((module, arguments, os.getcwd(), dict(os.environ)))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(path)
        socket.send_fds(server, [request], [0, 1, 2])
        answer = server.recv(MESSAGE_BYTES)
    if not answer:
        print(f"{module}: the process ended without an exit code", file=sys.stderr)
        return 1
    return marshal.loads(answer)


def serve(listener, modules):
    """Import `modules`, then run each request of a listening socket in a fork."""
    import gc
    import selectors
    import signal
    from importlib import import_module

    for module in modules:
        import_module(module)
    gc.freeze()  # a collection in a fork would copy the pages of what was imported
    ignored = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no child waits to be asked for
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        while all(key.fileobj is listener for key, _ in selector.select()):
            caller, _ = listener.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, ignored)
                _run(caller)
            caller.close()


def _run(caller):
    """Run the command that a caller asks for, tell its exit code, and end as a command does."""
    data, streams, _, _ = socket.recv_fds(caller, MESSAGE_BYTES, 3)
    module, arguments, folder, environment = marshal.loads(data)
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    # The server's own are of other files: of one that can seek, a pipe would be asked to.
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [module, *arguments]
    code = 1
    try:
        code = sys.modules[module].main()
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        caller.send(marshal.dumps(code or 0))
    sys.exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(socket.socket(fileno=int(sys.argv[2])), sys.argv[3:])
    else:
        sys.exit(call(sys.argv[1], sys.argv[2], sys.argv[3:]))
