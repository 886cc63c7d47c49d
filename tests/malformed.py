"""Command lines that are wrong in one way each, drawn at random over all commands and front ends.

Each draw takes a sound line and breaks it so that it cannot be sound any more, without knowing what
the reader does with it.
"""

from __future__ import annotations

import json
import random
import re
import shlex
from collections.abc import Callable
from pathlib import Path

Words = list[str]

# What no size is.
NO_SIZES = (
    *(
        "",
        " ",
        "x",
        "4x",
        "x4",
        "4xx4",
        "-3",
        "1.5",
        "1e3",
        "0x10",
        "+4",
        " 4",
        "4 ",
        "4_0",
        "None",
    ),
    *("\u0663", "\uff14", "\u00b2", "9" * 20, "9" * 5000, "\0", "\udcff", "4\n", "true", "[4]"),
)
# What names nothing: no type, layout, chip, device, strategy, direction or op.
NO_NAMES = (
    *("", " ", "wat", "f4", "NHWZ", "gfx0", "cpu@", "cpu@4", "cpu-znver4@0", "hip://", "cuda://x"),
    *("f16 ", "F16", "scale(", "scale()", "scale(x)", "bilinear(1)", "relu(1)", "\0", "\udcff"),
    *("a" * 3000, ",,", "fp8,fp8,fp8", "(((((", "%s", "{}", "\n", "../../etc", "--"),
)
# Flags of ours whose value is a size or sizes, and those whose value is a name.
SIZES = (
    "-n",
    "-k",
    "-c",
    "-g",
    "--image",
    "--filter",
    "--stride",
    "--dilation",
    "--pad",
    "--batch",
)
NAMES = ("--dtype", "--layout", "--direction", "--compute", "--weight-dtype", "--elementwise")
JSON_WRONG = (
    *(None, True, -1, 0, 1.5, "x", "", [], {}, [[]], [None], [1.5], ["8"], [8, 8, 8, 8], {"a": 1}),
    *(2**31, 2**63, 10**400, float("nan"), float("inf"), -0.0, [True, True], [8, -8], [0, 0]),
)
BUILDING = ("compile", "verify", "sweep", "inspect", "run")


class Lines:
    """Draws lines; `folder` has files they may name: one of each kind that is none of problems."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.draw = random.Random(seed)
        self.folder = folder
        (folder / "folder").mkdir(exist_ok=True)
        (folder / "empty").write_text("")
        (folder / "comment").write_text("# nothing\n\n")
        (folder / "binary").write_bytes(bytes(range(256)))
        (folder / "text.vmfb").write_text("not a module")
        (folder / "text.npy").write_text("1 2 3")

    def __call__(self) -> Words:
        """A line that must be refused."""
        kinds: tuple[Callable[[], Words], ...] = (
            *(self._flags, self._flags, self._miopen, self._ckprofiler, self._example),
            *(self._json, self._json, self._file, self._build, self._other, self._artifact),
        )
        return self.draw.choice(kinds)()

    def _command(self, *problem: str) -> Words:
        """A command that takes a problem, with that problem before or behind its other words."""
        name = self.draw.choice(BUILDING)
        more = []
        if name == "run":
            more = ["-o", str(self.folder / "out.npy")]
        elif self.draw.random() < 0.3:
            more = ["--json"]
        if self.draw.random() < 0.3:
            more += ["--target", self.draw.choice(("cpu", "gfx942", "sm_80", "cpu,gfx1100"))]
        return [name, *more, *problem]

    def _ours(self) -> dict[str, str]:
        draw = self.draw
        ndim = draw.randint(1, 3)

        def each(low: int, high: int) -> str:
            return "x".join(str(draw.randint(low, high)) for _ in range(ndim))

        found = {"-n": "2", "-k": "4", "-c": "4", "--image": each(6, 9), "--filter": each(1, 3)}
        if draw.random() < 0.5:
            found["--stride"] = each(1, 2)
        if draw.random() < 0.5:
            found["--dtype"] = draw.choice(("f32", "f16", "bf16"))
        return found

    def _flags(self) -> Words:
        draw, flags = self.draw, self._ours()
        more: Words = []
        kind = draw.randrange(8)
        if kind == 0:
            flags[draw.choice(SIZES)] = draw.choice(NO_SIZES)
        elif kind == 1:
            flags[draw.choice(NAMES)] = draw.choice(tuple(filter(str.strip, NO_NAMES)))
        elif kind == 2:
            del flags[draw.choice(("-n", "-k", "-c", "--image", "--filter"))]
        elif kind == 3:
            flags["--filter"] = flags["--image"].replace("6", "99").replace("7", "99")
            flags["--image"] = "x".join("5" for _ in flags["--image"].split("x"))
            flags["--filter"] = "x".join("6" for _ in flags["--image"].split("x"))
        elif kind == 4:
            more = [
                draw.choice(("--wat", "-y", "--imag", "--n", "-Z", "--target-cpu=1", "---", "-"))
            ]
        elif kind == 5:
            name = draw.choice(tuple(flags))
            more = [name, "17" if name != "--dtype" else "i8"]
        elif kind == 6:
            more = [draw.choice((*SIZES, *NAMES, "--split-k"))]
        else:
            flags["--stride"] = "1x1x1x1"
        return self._command(*(word for pair in flags.items() for word in pair), *more)

    def _miopen(self) -> Words:
        draw = self.draw
        line = shlex.split("convfp16 -n 2 -c 8 -k 8 -H 9 -W 9 -y 3 -x 3 -p 1 -q 1 -F 4")
        kind = draw.randrange(7)
        if kind == 0:
            line[draw.choice(range(2, len(line), 2))] = draw.choice(NO_SIZES)
        elif kind == 1:
            line[0] = draw.choice(("convfp8", "convwat", "bnorm", "MIOpenDriver"))
        elif kind == 2:
            line += [draw.choice(("--wat", "-wat", "wat", "--target", "--json", "--split-k", "--"))]
        elif kind == 3:
            line += [draw.choice(("-g", "-u", "--in_layout", "-I", "-F"))]
        elif kind == 4:
            line += ["-g", draw.choice(("3", "5", "16"))]
        elif kind == 5:
            line += draw.choice(
                ("-m cross", "-b 2", "-r 1", "-I CHWN", "-Y 1", "-u 0", "-l 0", "-_ 4", "-F 8")
            ).split()
        else:
            line[4 + 2 * draw.randrange(2)] = "0"
        if line[0] in ("bnorm", "convwat", "convfp8") or draw.random() < 0.5:
            line = ["MIOpenDriver", *line]
        return self._as_line(line)

    def _ckprofiler(self) -> Words:
        draw = self.draw
        operation, head, split_k = draw.choice(
            (
                ("grouped_conv_bwd_weight", "1 2 1 1 0 1 1", ["1"]),
                ("grouped_conv_bwd_data", "1 1 1 1 0 1 1", ["1"]),
                ("grouped_conv_fwd", "1 1 0 1 1 0 1 1", []),
                ("conv_fwd", "1 1 1 1 0 1 1", []),
            )
        )
        line = [*head.split(), *["1", "2", "8", "8", "3", "9", "1", "1", "1", "1"], *split_k]
        kind = draw.randrange(6)
        if kind == 0:
            line[draw.randrange(len(line))] = draw.choice(NO_SIZES)
        elif kind == 1:
            line = line[: draw.randrange(len(line) - 1)]
        elif kind == 2:
            line += [str(draw.randrange(9)) for _ in range(draw.randint(1, 5))]
            line += ["1"] * (operation == "grouped_conv_bwd_data")
        elif kind == 3:
            line[draw.choice((0, 1))] = draw.choice(("9", "77", "-1"))
        elif kind == 4:
            operation += draw.choice(("_wat", "_clamp", "_bias_clamp", "x"))
        else:
            line += [draw.choice(("--instances", "--target", "--json", "--verify=1", "-o"))]
        return self._as_line(["ckProfiler", operation, *line])

    def _example(self) -> Words:
        draw = self.draw
        program = draw.choice(("example_convnd_bwd_data_xdl", "./grouped_conv_bwd_weight_xdl"))
        line = ["1", "1", "0", "1", "1", "2", "8", "8", "3", "9", "1", "1", "1", "1"]
        kind = draw.randrange(4)
        if kind == 0:
            line[draw.randrange(len(line))] = draw.choice(NO_SIZES)
        elif kind == 1:
            line = line[: draw.choice((1, 2, *range(4, len(line))))]
        elif kind == 2:
            line += ["1"]
        else:
            program += "_wat"
        return self._as_line([program, *line])

    def _as_line(self, line: Words) -> Words:
        """A line of another program, unquoted, or as one word."""
        plain = all(re.fullmatch("[!-~]+", word) for word in line)
        if plain and self.draw.random() < 0.3:
            return self._command(" ".join(line))
        return self._command(*line)

    def _json(self) -> Words:
        draw = self.draw
        value = {"n": 2, "k": 4, "c": 4, "image": [8, 8], "filter": [3, 3]}
        kind = draw.randrange(5)
        if kind == 0:
            name = draw.choice(tuple(value))
            wrong = [item for item in JSON_WRONG if not (name == "image" and item == "8")]
            value[name] = draw.choice(wrong)
        elif kind == 1:
            names = ("dtype", "layout", "direction", "compute", "elementwise", "input_op")
            wrong = (True, 1, -1, [7.5], {"a": 1}, "wat", [[]], 1.5, [None])
            value[draw.choice((*names, "weight_dtype"))] = draw.choice(wrong)
            if draw.random() < 0.2:
                value["split_k"] = draw.choice((True, 0, -2, [7.5], {"a": 1}, "wat", [[]], [None]))
        elif kind == 2:
            value[draw.choice(("", "wat", "N", "images", "\u0000"))] = 1
        elif kind == 3:
            del value[draw.choice(tuple(value))]
        text = json.dumps(value)
        if kind == 4:
            at = draw.randrange(1, len(text))
            text = draw.choice(
                (text[:at], "[" * 3000, text + "}", f"[{text},", "[1]", '{"n": 1e999}')
            )
        if draw.random() < 0.3 and kind != 4:
            path = self.folder / "problem.json"
            path.write_text(text)
            text = str(path)
        return self._command(text)

    def _file(self) -> Words:
        draw = self.draw
        names = ("none", "folder", "empty", "comment", "binary", "none/none", "a" * 300, "\0", "")
        path = str(self.folder / draw.choice(names))
        if draw.random() < 0.3:
            lines = Path(self.folder / "lines.txt")
            lines.write_text(
                "# one\n" + draw.choice(("wat", "convfp16 -F 9", "'", "-n 2", "conv_"))
            )
            path = str(lines)
        return self._command(draw.choice((path, path, path, "", " ", "\n")))

    def _build(self) -> Words:
        """Sound problems with what says how to build and run them broken."""
        draw = self.draw
        sound = [word for pair in self._ours().items() for word in pair]
        none = str(self.folder / "none")
        more = draw.choice(
            (
                ("--target", draw.choice(("gfx0", "", ",", "cpu@4", "cpu-znver4@0", "gfx942@2"))),
                ("--strategy", draw.choice(("wat", "\0", "", "implicit", "IMPLICIT_GEMM"))),
                ("--split-k", draw.choice(("0", "-2", "x", "", "1,,2", "1e3", "9" * 99, "99999"))),
                ("--tile", draw.choice(("x", "64x", "-1", "", "0x0x0", "1x1x1x1x1x1x1x1x1"))),
                ("--schedule", draw.choice((none, str(self.folder / "folder"), "\0"))),
                ("--schedule", str(self.folder / "empty")),
                ("--batch", draw.choice(("0", "-1", "x", "", "9" * 30))),
                ("problem.wat",),
                ("--target",),
            )
        )
        command = draw.choice(("compile", "verify", "sweep", "inspect"))
        if command == "verify" and draw.random() < 0.5:
            more = draw.choice(
                (
                    ("--data", "wat"),
                    ("--seed", draw.choice(("x", "-1", "1.5", ""))),
                    ("--runs", draw.choice(("0", "-1", "x"))),
                    ("--device", draw.choice(("wat", "hip://x", "vgpu://1", "cpu://0", ""))),
                )
            )
        if command == "compile" and draw.random() < 0.5:
            more = (
                "-o",
                draw.choice((f"{none}/x.vmfb", str(self.folder / "text.vmfb"), "\0.vmfb")),
            )
        return [command, *sound, *more]

    def _other(self) -> Words:
        """Commands without problems, and what is no command."""
        draw, none = self.draw, str(self.folder / "none")
        return list(
            draw.choice(
                (
                    ("list", draw.choice(("wat", "", "target", "layouts,dtypes"))),
                    ("list",),
                    ("list", "layouts", "more"),
                    ("list", "layouts", "--check"),
                    ("cache", draw.choice(("wat", "", "show,clear"))),
                    ("cache", "clear", "--yes"),
                    ("demo", "--problems", draw.choice((none, str(self.folder / "empty")))),
                    ("demo", "--batch", draw.choice(("0", "x"))),
                    ("demo", "--target", "gfx0"),
                    ("demo", "more"),
                    (draw.choice(("wat", "", "Compile", "compile ", "-1", "\udcff")),),
                    ("--wat",),
                    ("--",),
                    ("inspect", "-n", "1", "--stage", "wat"),
                    ("inspect", "--run", "--look", none + ".vmfb"),
                )
            )
        )

    def _artifact(self) -> Words:
        draw = self.draw
        vmfb = str(self.folder / draw.choice(("none.vmfb", "text.vmfb", "folder.vmfb")))
        (self.folder / "folder.vmfb").mkdir(exist_ok=True)
        npy = str(self.folder / draw.choice(("none.npy", "text.npy", "folder")))
        return list(
            draw.choice(
                (
                    ("inspect", vmfb),
                    ("inspect", vmfb, "--json"),
                    ("inspect", vmfb, "--model"),
                    ("inspect", vmfb, "-n", "4"),
                    ("inspect", vmfb, vmfb),
                    ("inspect", vmfb, "--stage", "isa"),
                    ("inspect", vmfb, "--run"),
                    ("run", vmfb, "--input", npy, "--d-output", npy, "-o", npy),
                    ("run", vmfb, "--input", npy, "-o", str(self.folder / "out.npy")),
                    ("run", vmfb),
                    ("run", "-o", npy),
                    ("compile", vmfb),
                    ("verify", vmfb),
                )
            )
        )
