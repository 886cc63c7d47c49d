"""Damaged artifacts, records and problems, and what the commands make of them.

`python -m tests.damage KIND SEED DRAWS FOLDER` draws so many of a kind out of the artifacts in a
folder (`prepare`), in a process of its own, for a loader may end it. It prints a line for each that
the commands did not take or refuse in one line with exit code 2, and a count of outcomes at last.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import signal
import struct
import sys
import tempfile
import traceback
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

from conv_compiler import ConvProblem, compile
from conv_compiler.artifacts.embedded import NAME
from conv_compiler.artifacts.record import signed
from conv_compiler.cli import main

SMALL = {"n": 2, "k": 16, "c": 8, "image": (9, 9), "filter": (3, 3)}
TARGETS = ("cpu", "gfx942", "gfx1100", "sm_80")
SECONDS = 20  # of one command; a hang
# Values of every type of JSON, and texts that mean something elsewhere.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 3, 2**31, 2**64, -(2**63), 0.5, -1e300, "", "x", "f16", "cpu"),
    *([], {}, [1], [1, 2, 3, 4], [[1]], [None], {"a": 1}, {"n": {}}, ["x"], "é\u2028", "1" * 400),
)


def prepare(folder: Path) -> None:
    """Compile an artifact a target into a folder."""
    for target in TARGETS:
        compile(ConvProblem(**SMALL), target).save(folder / f"{target}.vmfb")


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Bytes flipped, cut off, left out, put in, zeroed, repeated or moved."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, length = rng.randrange(len(found)), rng.choice((1, 4, 64, 1000))
        match rng.randrange(8):
            case 0 | 1 | 2:
                found[at] ^= 1 << rng.randrange(8)
            case 3:
                del found[at + 1 :]
            case 4:
                del found[at : at + length]
            case 5:
                where = rng.choice((0, at, len(found)))
                found[where:where] = rng.randbytes(length)
            case 6:
                found[at : at + length] = bytes(min(length, len(found) - at))
            case 7:
                found[at:at] = found[rng.randrange(len(found)) :][:length]
        if not found:
            break
    return bytes(found)


def forged(data: bytes, rng: random.Random) -> bytes:
    """A module with altered entries whose checksums have been mended."""
    found = bytearray(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entry, central = rng.choice(archive.infolist()), archive.start_dir
    name, extra = struct.unpack_from("<HH", found, entry.header_offset + 26)
    start = entry.header_offset + 30 + name + extra
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = start + rng.randrange(entry.file_size)
        found[at] = rng.choice((found[at] ^ 1 << rng.randrange(8), 0, 127, 255))
    # The first 64 bytes of a code object are its header.
    if rng.random() < 0.3 and (elf := found.find(b"\x7fELF", start)) > 0:
        struct.pack_into("<Q", found, elf + rng.choice((24, 32, 40)), rng.randrange(2**16))
    checksum = zlib.crc32(found[start : start + entry.file_size])
    struct.pack_into("<I", found, entry.header_offset + 14, checksum)
    record = found.find(entry.filename.encode(), central) - 46
    struct.pack_into("<I", found, record + 16, checksum)
    return bytes(found)


def altered(value: Any, rng: random.Random) -> Any:
    """A JSON value with one of its parts put in another's place, left out or nested."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.1:
        return rng.choice(VALUES)
    changed = value.copy()
    key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
    match rng.randrange(10):
        case 0:
            del changed[key]
        case 1 if isinstance(changed, dict):
            changed[rng.choice(("x", "", "n ", "sha256"))] = rng.choice(VALUES)
        case 1:
            changed.append(rng.choice(VALUES))
        case 2:
            changed[key] = [value[key]]
        case _:
            changed[key] = altered(value[key], rng)
    return changed


def spelled(value: Any, rng: random.Random) -> bytes:
    """JSON text, mostly of a value as it is."""
    text = json.dumps(value).encode()
    match rng.randrange(20):
        case 0:
            return damaged(text, rng)
        case 1:
            depth = rng.choice((10, 1000, 10**5))
            return text[:-1] + b', "z": ' + b"[" * depth + b"]" * depth + b"}"
        case 2:
            return text.replace(b'"', b'"\\ud800' if rng.random() < 0.5 else b'"\xff', 1)
        case 3:
            return text.replace(b"1", rng.choice((b"NaN", b"1e999", b"-0", b"1" * 5000)), 1)
    return text


def with_record(data: bytes, text: bytes) -> bytes:
    """An artifact with another text in place of its record."""
    file = io.BytesIO(data)
    with zipfile.ZipFile(file, "a") as archive:
        old = archive.NameToInfo.pop(NAME)
        archive.filelist.remove(old)
        archive.start_dir = old.header_offset
        archive.writestr(zipfile.ZipInfo(NAME), text)
    return file.getvalue()


def taken_apart(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The values of an artifact's record, and the bytes that it is signed with."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        place = archive.getinfo(NAME)
        return json.loads(archive.read(place)), data[: place.header_offset]


def drawn(kind: str, folder: Path, rng: random.Random, work: Path) -> list[list[str]]:
    """Damage of a kind in the folder `work`, and the command lines that are to see it."""
    module, problem = work / "x.vmfb", work / "x.txt"
    data = (folder / f"{rng.choice(TARGETS)}.vmfb").read_bytes()
    values, before = taken_apart(data)
    lines = [["inspect", str(module), *rng.choice(([], ["--json"], ["--stage", "payload"]))]]
    if kind == "problem":
        values = {**values["problem"], "split_k": rng.choice((1, "auto", [1, 2]))}
        problem.write_bytes(spelled(altered(values, rng), rng))
        return [["inspect", "--stage", "payload", str(problem)]]
    if kind == "record":
        changed = altered(values, rng)
        if isinstance(changed, dict) and rng.random() < 0.7:
            changed = signed(changed, before)
        module.write_bytes(with_record(data, spelled(changed, rng)))
        return lines
    if kind == "forged":  # which IREE is not shown: it would end the process
        module.write_bytes(forged(data, rng))
        return [["inspect", str(module), "--model"], *lines]
    module.write_bytes(damaged(data, rng))
    operands = [f"--{name}={folder / name}.npy" for name in ("input", "d-output")]
    run = ["run", str(module), *operands, "-o", str(work / "out.npy")]
    return [["inspect", str(module), "--model"], *lines, run]


def outcome(words: list[str]) -> str:
    """What came of a command line: "done", "refused", or what should not be."""
    out, err = io.StringIO(), io.StringIO()
    signal.signal(signal.SIGALRM, _hangs)
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(words)
    except BaseException:  # whatever it is, it is what is looked for
        return "traceback: " + " | ".join(traceback.format_exc().splitlines()[-3:])
    finally:
        signal.alarm(0)
    said = err.getvalue()
    if status == 2 and said.startswith("conv-compiler: error: ") and said.count("\n") == 1:
        return "refused"
    return "done" if status == 0 and not said else f"status {status}: {said!r}"


def _hangs(*_: object) -> None:
    raise TimeoutError(f"no result after {SECONDS} s")


def run(kind: str, seed: int, draws: int, folder: Path) -> Counter[str]:
    """Outcomes of so many draws; a line for each bad one."""
    import numpy as np

    shapes = {"input": (2, 9, 9, 1, 8), "d-output": (2, 7, 7, 1, 16)}
    for name, shape in shapes.items():
        np.save(folder / f"{name}.npy", np.zeros(shape, np.float16))
    found: Counter[str] = Counter()
    for number in range(draws):
        rng = random.Random(f"{kind} {seed} {number}")
        with tempfile.TemporaryDirectory() as work:
            for words in drawn(kind, folder, rng, Path(work)):
                print(f"{number}", file=sys.stderr, flush=True)  # the last one, if all ends here
                result = outcome(words)
                found[result if result in ("done", "refused") else "bad"] += 1
                if result not in ("done", "refused"):
                    print(f"{kind} {seed} {number}: {words[0]} {words[2:]}: {result}", flush=True)
    return found


KINDS = ("module", "forged", "record", "problem")

if __name__ == "__main__":
    _, kind, seed, draws, folder = sys.argv
    print(json.dumps(run(kind, int(seed), int(draws), Path(folder))))
