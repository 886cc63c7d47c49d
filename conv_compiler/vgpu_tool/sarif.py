# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Findings as SARIF 2.1.0, which code hosts and editors show (OASIS, sarif-v2.1.0)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from conv_compiler.binary.source_lines import Place
from conv_compiler.vgpu.findings import Finding

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(file: Path, findings: Iterable[tuple[Finding, Place | None]]) -> str:
    """One run with a result for each finding of a file's kernel, at its line where that is known.

    The instruction in the file is the location of a finding without a line, and a related one of
    the others.
    """
    results = [_result(file, one, place) for one, place in findings]
    rules = [{"id": rule} for rule in dict.fromkeys(one["ruleId"] for one in results)]
    tool = {"driver": {"name": "vgpu", "rules": rules}}
    document = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": tool, "results": results}],
    }
    return json.dumps(document, indent=1) + "\n"


def _result(file: Path, one: Finding, place: Place | None) -> dict[str, Any]:
    lane = "" if one.lane is None else f", lane {one.lane}"
    text = f"{one.detail}: `{one.text}`, workgroup {one.workgroup}, wave {one.wave}{lane}"
    binary = {
        "physicalLocation": {
            "artifactLocation": {"uri": file.as_posix()},
            "address": {"absoluteAddress": one.address, "kind": "instruction"},
        }
    }
    where: dict[str, Any] = {"locations": [binary]}
    if place:
        region = {"startLine": place.line}
        if place.column:
            region["startColumn"] = place.column
        source = {"artifactLocation": {"uri": place.file}, "region": region}
        where = {"locations": [{"physicalLocation": source}], "relatedLocations": [binary]}
    return {
        "ruleId": one.kind or "fault",
        "level": "error",
        "message": {"text": text},
        **where,
    }
