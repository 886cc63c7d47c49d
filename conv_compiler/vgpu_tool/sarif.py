# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Findings as SARIF 2.1.0, which code hosts and editors show (OASIS, sarif-v2.1.0)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from conv_compiler.vgpu.findings import Finding

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(file: Path, findings: Iterable[Finding]) -> str:
    """One run with a result for each finding of a file's kernel."""
    results = [
        {
            "ruleId": one.kind or "fault",
            "level": "error",
            "message": {
                "text": f"{one.detail}: `{one.text}`, workgroup {one.workgroup}, wave {one.wave}"
                + ("" if one.lane is None else f", lane {one.lane}")
            },
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": file.as_posix()},
                        "address": {"absoluteAddress": one.address, "kind": "instruction"},
                    }
                }
            ],
        }
        for one in findings
    ]
    rules = [{"id": rule} for rule in dict.fromkeys(one["ruleId"] for one in results)]
    tool = {"driver": {"name": "vgpu", "rules": rules}}
    document = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": tool, "results": results}],
    }
    return json.dumps(document, indent=1) + "\n"
