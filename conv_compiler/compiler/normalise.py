# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The scripts of `mlir/normalise/`: transform sequences that call passes of ours, run in process.

No op of the transform dialect makes a GEMM of a weight gradient, and the compiler's Python bindings
define no new ops (docs/design.md, "Passes as steps of a script"). But they attach an interface to
an op that exists: here a `func.call` in a script becomes a transform op. It runs the pass of its
callee's name on the payload, with the options that it is given as parameters. A parameter holds the
option that the callee's declaration names for it (`conv_compiler.option`). One without a name holds
all others as a dictionary, or `false` where the kernel does without the step. A step without such a
parameter is in every kernel of the script.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import transform
from iree.compiler.dialects.transform import interpreter

from conv_compiler.errors import CompileFailed, StrategyNotApplied
from conv_compiler.passes import find_pass
from conv_compiler.strategies.schedule import SCRIPTS

if TYPE_CHECKING:
    from conv_compiler.passes import Pass

SEQUENCE = "normalise"
_CALL = "func.call"
_OPTION = "conv_compiler.option"
_LEFT_OUT = "false"


class Call(NamedTuple):
    """A step of a script: the pass it calls, and the option that each parameter of the sequence
    holds, by the parameter's number; "" for all others together."""

    name: str
    options: Mapping[int, str]


@dataclass(frozen=True)
class _Run:
    """A script at work on a payload: option names by callee, and what its steps raised."""

    payload: ir.Module
    declared: Mapping[str, tuple[str, ...]]
    raised: list[BaseException] = field(default_factory=list)


_RUN: ContextVar[_Run] = ContextVar("normalise")


class _RunsPass(transform.TransformOpInterface):  # type: ignore[misc]
    """How a call in a script is applied."""

    @staticmethod
    def apply(
        op: ir.OpView, _rewriter: object, _results: object, state: transform.TransformState
    ) -> transform.DiagnosedSilenceableFailure:
        """Run the pass; an exception is kept, for none may pass through the interpreter."""
        run = _RUN.get()
        try:
            given = [state.get_params(operand)[0] for operand in list(op.operands)[1:]]
            options = dict(zip(run.declared[_callee(op)], given, strict=True))
            if str(options.get("")) != _LEFT_OUT:
                _step(_callee(op), options).apply(run.payload)
        except BaseException as error:
            run.raised.append(error)
            return transform.DiagnosedSilenceableFailure.DefiniteFailure
        return transform.DiagnosedSilenceableFailure.Success

    @staticmethod
    def allow_repeated_handle_operands(_op: ir.OpView) -> bool:
        """No step takes two handles."""
        return False


class _ChangesPayload(ir.MemoryEffectsOpInterface):  # type: ignore[misc]
    """What a call in a script does to handles and payload."""

    @staticmethod
    def get_effects(op: ir.OpView) -> list[ir.MemoryEffectInstance]:
        """The payload's handle stays valid: the module itself is rewritten in place."""
        return [*transform.only_reads_handle(op.op_operands), *transform.modifies_payload()]


def normalise(module: ir.Module, script: str, steps: tuple[Pass, ...]) -> None:
    """Run the steps on a payload, in the order of `mlir/normalise/<script>.mlir`.

    Raises what a pass raises, and StrategyNotApplied for steps that are not in that order.
    """
    # From here on without threads of the compiler's own: one that asks Python for the effects of an
    # op would wait for this one, which waits for it.
    module.context.enable_multithreading(False)
    with module.context, ir.Location.unknown():
        _RunsPass.attach(_CALL)
        _ChangesPayload.attach(_CALL)
        library = ir.Module.parse((SCRIPTS / SEQUENCE / f"{script}.mlir").read_text())
        values: dict[int, ir.Attribute] = {}
        for call, step in _placed(list(calls(library)), steps, script):
            values |= _parameters(call, step)
        entry = _entry(library, values)
        run = _Run(module, _declared(library))
        token = _RUN.set(run)
        try:
            interpreter.apply_named_sequence(module.operation, entry, library.operation)
        except ValueError as error:
            if run.raised:
                raise run.raised[0] from None
            raise CompileFailed(f"script normalise/{script}.mlir: {error}") from error
        finally:
            _RUN.reset(token)


def calls(library: ir.Module) -> Iterator[Call]:
    """The steps of a script's sequence, in order."""
    declared = _declared(library)
    for op in _sequence(library).operation.regions[0].blocks[0]:
        if op.operation.name == _CALL:
            parameters = [ir.BlockArgument(x).arg_number for x in list(op.operands)[1:]]
            name = _callee(op)
            yield Call(name, dict(zip(parameters, declared[name], strict=True)))


def _sequence(library: ir.Module) -> ir.OpView:
    (found,) = (op for op in library.body if _symbol(op) == SEQUENCE)
    return found


def _declared(library: ir.Module) -> dict[str, tuple[str, ...]]:
    """The options of each pass that a script declares, by the order of its parameters."""
    found = {}
    for op in library.body:
        if op.operation.name == "func.func":
            arguments = list(ir.TypeAttr(op.attributes["function_type"]).value.inputs)
            named = op.attributes.get("arg_attrs", ())
            texts = [_option(one) for one in named] or [""] * len(arguments)
            found[_symbol(op).replace("_", "-")] = tuple(texts[1:])
    return found


def _option(attributes: ir.Attribute) -> str:
    pairs = ir.DictAttr(attributes)
    return str(ir.StringAttr(pairs[_OPTION]).value) if _OPTION in pairs else ""


def _placed(found: list[Call], steps: tuple[Pass, ...], script: str) -> list[tuple[Call, Pass]]:
    """Each step with its place: the next call of its name."""
    left = iter(found)
    placed: list[tuple[Call, Pass]] = []
    for step in steps:
        place = next((call for call in left if call.name == step.name), None)
        if place is None:
            raise StrategyNotApplied(
                f"pass {step.name}: has no place in mlir/normalise/{script}.mlir behind "
                f"{', '.join(one.name for _, one in placed) or 'its start'}; give it one"
            )
        placed.append((place, step))
    return placed


def _parameters(call: Call, step: Pass) -> dict[int, ir.Attribute]:
    """A pass's options as the parameters of a call, by number."""
    kind: Any = type(step)
    options = {one.name: _attribute(getattr(step, one.name)) for one in fields(kind)}
    own = {number: options.pop(name) for number, name in call.options.items() if name}
    others = next((number for number, name in call.options.items() if not name), None)
    if others is not None:
        return {**own, others: ir.DictAttr.get(options)}
    if options:
        raise StrategyNotApplied(
            f"pass {call.name}: its declaration in the script has no parameter for "
            f"{', '.join(options)}; add one"
        )
    return own


def _entry(library: ir.Module, values: Mapping[int, ir.Attribute]) -> ir.Operation:
    """A sequence of constants that includes the script's; steps without values are left out."""
    readonly = {"transform.readonly": ir.UnitAttr.get()}
    number = ir.Type.parse("!transform.param<i64>")
    payload, *parameters = _sequence(library).operation.regions[0].blocks[0].arguments
    with ir.InsertionPoint(library.body):
        entry = transform.NamedSequenceOp("entry", [payload.type], [], arg_attrs=[readonly])
    with ir.InsertionPoint(entry.body):
        operands = [entry.body.arguments[0]]
        for one in parameters:
            without = "0 : i64" if one.type == number else _LEFT_OUT
            value = values.get(one.arg_number, ir.Attribute.parse(without))
            operands.append(transform.ParamConstantOp(one.type, value).result)
        propagate = ir.Attribute.parse("1 : i32")
        transform.IncludeOp([], ir.FlatSymbolRefAttr.get(SEQUENCE), propagate, operands)
        transform.YieldOp([])
    return entry.operation


def _symbol(op: ir.OpView) -> str:
    return str(ir.StringAttr(op.operation.attributes["sym_name"]).value)


def _callee(op: ir.OpView) -> str:
    """The pass that a call runs; a symbol has no dashes."""
    return str(ir.FlatSymbolRefAttr(op.operation.attributes["callee"]).value).replace("_", "-")


def _attribute(value: object) -> ir.Attribute:
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, tuple):
        return ir.ArrayAttr.get([_attribute(one) for one in value])
    raise TypeError(f"option {value!r}: of a type that no parameter holds")


def _step(name: str, options: Mapping[str, ir.Attribute]) -> Pass:
    """The pass that the parameters of a call make."""
    values = {option: _value(one) for option, one in options.items() if option}
    if "" in options:
        others = ir.DictAttr(options[""])
        values |= {others[i].name: _value(others[i].attr) for i in range(len(others))}
    return find_pass(name)(**values)


def _value(attribute: ir.Attribute) -> object:
    if isinstance(attribute, ir.ArrayAttr):
        return tuple(_value(one) for one in attribute)
    assert isinstance(attribute, ir.BoolAttr | ir.IntegerAttr | ir.StringAttr), str(attribute)
    return attribute.value
