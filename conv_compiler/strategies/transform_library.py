# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The transform library of a schedule: scripts of mlir/, a user's own, and the entry sequences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from iree.compiler import ir
from iree.compiler.dialects import transform

from conv_compiler.errors import UnsupportedStrategy
from conv_compiler.strategies.schedule import SCRIPTS
from conv_compiler.strategies.sequence_builder import Sequence

Entry = Callable[[Sequence], object]


def library(
    scripts: tuple[str, ...],
    entries: Iterable[str],
    written: Mapping[str, Entry],
    own: str = "",
    fixed: tuple[str, ...] = (),
) -> tuple[str, tuple[str, ...]]:
    """The text of what the entries reach in the scripts `mlir/<name>.mlir`, and the names of the
    user's sequences in it that are not as ours.

    An entry is a sequence of the scripts or one `written` here. A script declares what it takes
    from another one; the definition replaces the declaration. `own` is the text of a user's module:
    a sequence it defines, an entry too, takes the place of ours, but not that of a `fixed` one.
    Raises UnsupportedStrategy when it is no transform library, has a sequence that nothing runs or
    none that differs from ours.
    """
    ours = library(scripts, entries, written)[0] if own else ""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("module attributes { transform.with_named_sequence } {}")
        sources = [ir.Module.parse((SCRIPTS / f"{script}.mlir").read_text()) for script in scripts]
        users = _user_module(own) if own else None
        found: dict[str, ir.Operation] = {}
        for source in ([users] if users else []) + sources:
            for name, op in _definitions(source):
                if not (source is users and name in fixed):
                    found.setdefault(name, op)
        # What is fixed comes last, so that a schedule given back as it is printed is printed so.
        for name, op in found.items():
            if name not in fixed:
                module.body.append(op.clone())
        with ir.InsertionPoint(module.body):
            for name, write in written.items():
                if name not in found:
                    _write_entry(name, write)
        for name in fixed:
            module.body.append(found[name].clone())
        _keep_reached(module, entries, users)
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            raise (_refused(error) if users else error) from None
        return str(module), _replaced(users, ours, fixed) if users else ()


def _replaced(users: ir.Module, ours: str, fixed: tuple[str, ...]) -> tuple[str, ...]:
    """The sequences of a user's module that our library has otherwise, or not at all."""
    library_ = ir.Module.parse(ours)
    as_ours = {name: str(op) for name, op in _definitions(library_)}
    found = tuple(
        name
        for name, op in _definitions(users)
        if name not in fixed and as_ours.get(name) != str(op)
    )
    if not found:
        raise UnsupportedStrategy(
            "schedule: replaces nothing, for it has no sequence that differs from ours; "
            "change one of those that `inspect --stage schedule` prints, or leave it out"
        )
    return found


def _write_entry(name: str, write: Entry) -> None:
    sequence = transform.NamedSequenceOp(
        name, [transform.AnyOpType.get()], [], arg_attrs=[{"transform.readonly": ir.UnitAttr.get()}]
    )
    with ir.InsertionPoint(sequence.body):
        write(Sequence(sequence.body.arguments[0]))
        transform.YieldOp([])


def _definitions(module: ir.Module) -> Iterator[tuple[str, ir.Operation]]:
    """The sequences a module defines, by name; declarations left out."""
    for op in list(module.body.operations):
        if len(op.operation.regions[0].blocks):
            yield ir.StringAttr(op.attributes["sym_name"]).value, op.operation


def _keep_reached(module: ir.Module, entries: Iterable[str], users: ir.Module | None) -> None:
    """Erase the sequences that do not run when the entries do; none may be the user's."""
    bodies = dict(_definitions(module))
    reached = set(entries)
    waiting = list(reached)

    def follow(op: ir.Operation) -> ir.WalkResult:
        if op.name == "transform.include":
            name = ir.FlatSymbolRefAttr(op.attributes["target"]).value
            if name in bodies and name not in reached:
                reached.add(name)
                waiting.append(name)
        return ir.WalkResult.ADVANCE

    while waiting:
        bodies[waiting.pop()].walk(follow)
    for name, _ in _definitions(users) if users else ():
        if name not in reached:
            ours = ", ".join(f"@{other}" for other in sorted(reached))
            raise UnsupportedStrategy(
                f"schedule: @{name} takes no part in it; those that do are {ours}"
            )
    for name, op in bodies.items():
        if name not in reached:
            op.erase()


def _user_module(text: str) -> ir.Module:
    """A user's module, if it is a transform library."""
    try:
        module = ir.Module.parse(text)
    except ir.MLIRError as error:
        raise _refused(error) from None
    for op in module.body.operations:
        if op.operation.name != "transform.named_sequence":
            raise UnsupportedStrategy(
                f"schedule: holds {op.operation.name}; give transform.named_sequence ops alone"
            )
    return module


def _refused(error: ir.MLIRError) -> UnsupportedStrategy:
    first = error.error_diagnostics[0]
    # The bindings give the place as text only: loc("-":line:column).
    place = re.search(r"\d+:\d+", str(first.location))
    return UnsupportedStrategy(
        f"schedule: line {place[0] if place else '-'}: {first.message}; "
        "start from what `inspect --stage schedule` prints"
    )
