# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of a kernel's page: its code with counts and stalls, and its use of LDS banks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conv_compiler.markup import Markup, element, heat, table

if TYPE_CHECKING:
    from conv_compiler.model.instructions import Instruction
    from conv_compiler.model.kernel_model import KernelModel
    from conv_compiler.model.trace import Trace
    from conv_compiler.vgpu.counters import KernelCounters


def _number(value: float, style: str | None = None) -> Markup:
    return element("td", f"{value:.4g}" if value else "", class_="number", style=style)


def text_of(one: Instruction) -> str:
    """An instruction as assembly."""
    return f"{one.name} {', '.join(one.operands)}".strip()


def code_table(kernel: KernelModel, trace: Trace) -> Markup:
    """Every instruction: how often a wave runs it, and how long the waves stand still before it.

    The colour is its share of all cycles that the waves stand still.
    """
    stalls = trace.stalls()
    total = {
        one.address: stalls.get(one.address, 0.0) * trace.runs.get(one.address, 0)
        for one in kernel.code.code
    }
    most = max(total.values(), default=0.0) or 1.0
    rows = []
    for one in kernel.code.code:
        at = one.address
        shade = heat((total[at] / most) ** 0.5) if total[at] else None
        rows.append(
            [
                element("td", f"{at:#x}", class_="code"),
                element("td", text_of(one), class_="code"),
                _number(trace.runs.get(at, 0)),
                _number(stalls.get(at, 0.0)),
                _number(total[at], shade),
            ]
        )
    header = ("address", "instruction", "runs a wave", "stall each, cycles", "stall in all, cycles")
    return table(header, rows)


def banks_table(kernel: KernelModel, counters: KernelCounters) -> Markup | None:
    """Every LDS instruction that a first look ran: dwords of each bank, the busiest darkest.

    None for a kernel that uses no LDS.
    """
    if not counters.lds_uses:
        return None
    first = kernel.code.code[0].address
    named = {one.address - first: one for one in kernel.code.code if not one.dual}
    rows = []
    for use in counters.lds_uses:
        most = max(use.dwords) or 1
        cells = [
            element("td", style=heat(dwords / most), title=f"bank {bank}: {dwords} dwords")
            for bank, dwords in enumerate(use.dwords)
        ]
        one = named.get(use.offset)
        rows.append(
            [
                element("td", text_of(one) if one else f"+{use.offset:#x}", class_="code"),
                _number(use.cycles / use.accesses),
                _number(use.conflict_cycles / use.accesses),
                *cells,
            ]
        )
    banks = [str(bank) if bank % 8 == 0 else "" for bank in range(len(counters.lds_uses[0].dwords))]
    return table(("instruction", "cycles an access", "of them conflicts", *banks), rows)
