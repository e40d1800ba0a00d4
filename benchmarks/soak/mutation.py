"""Small changes of a module's meaning, one at a time: operators, constants, conditions, calls left out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_FUNCTIONS = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "minimum": "maximum",
    "maximum": "minimum",
    "zeros": "ones",
    "ones": "zeros",
    "argmin": "argmax",
    "argmax": "argmin",
    "exp": "expm1",
    "log": "log1p",
    "sum": "prod",
    "cumsum": "cumprod",
    "logaddexp": "maximum",
    "sqrt": "square",
    "floor": "ceil",
    "ceil": "floor",
    "append": "insert",
    "union": "intersection",
}


@dataclass(frozen=True)
class Mutant:
    """A change.

    Attributes
    ----------
    line : int
    text : str
        The line as it was.
    what : str
        The place before and after.
    code : str
        The module with the change.
    lines : tuple of int
        First and last line of the statement that it is in.
    """

    line: int
    text: str
    what: str
    code: str
    lines: tuple[int, int]


def sites(text: str) -> list[tuple[int, int]]:
    """All places of a module where something can be changed, and the ways to do it."""
    tree = ast.parse(text)
    skipped = _without_meaning(tree)
    return [
        (place, way)
        for place, node in enumerate(ast.walk(tree))
        if node not in skipped and hasattr(node, "lineno")
        for way, _ in enumerate(_changes(node))
    ]


def mutant(text: str, site: tuple[int, int]) -> Mutant:
    """The change at a site."""
    place, way = site
    tree = ast.parse(text)
    node = next(item for i, item in enumerate(ast.walk(tree)) if i == place)
    lines = _lines(_statements(tree)[node])
    before = ast.unparse(node)
    list(_changes(node))[way]()
    what = f"{_short(before)} → {_short(ast.unparse(node))}"
    line = text.splitlines()[node.lineno - 1].strip()
    return Mutant(node.lineno, line, what, ast.unparse(ast.fix_missing_locations(tree)), lines)


def _lines(statement: ast.stmt) -> tuple[int, int]:
    """First and last line of a statement, of its head if others are in it."""
    body = getattr(statement, "body", None)
    last = max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno or statement.lineno
    return statement.lineno, last


def _short(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= 70 else f"{line[:67]}…"


def _changes(node: ast.AST) -> Iterator[Callable[[], None]]:
    """What can be done to a node: functions that change it in place."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        yield lambda: node.ops.__setitem__(0, _COMPARISONS[type(node.ops[0])]())
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _ARITHMETIC:
        yield lambda: setattr(node, "op", _ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield lambda: setattr(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield lambda: setattr(node, "op", ast.UAdd())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield lambda: setattr(node, "operand", ast.UnaryOp(ast.Not(), node.operand))
    elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        value = node.value
        yield lambda: setattr(node, "value", (not value) if type(value) is bool else value + 1)
    elif isinstance(node, ast.keyword) and _is_last_axis(node):
        yield lambda: setattr(node, "value", ast.Constant(0))
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Return) and node.value is not None:
        if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield lambda: setattr(node, "value", ast.Constant(None))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield lambda: setattr(node, "value", ast.Constant(None))
    elif isinstance(node, ast.Call):
        name = node.func
        if isinstance(name, ast.Name) and name.id in _FUNCTIONS:
            yield lambda: setattr(name, "id", _FUNCTIONS[name.id])
        elif isinstance(name, ast.Attribute) and name.attr in _FUNCTIONS:
            yield lambda: setattr(name, "attr", _FUNCTIONS[name.attr])


def _is_last_axis(node: ast.keyword) -> bool:
    """``axis=-1``, which of a matrix is the same as ``axis=1``: another axis is the first one."""
    return node.arg == "axis" and ast.unparse(node.value) == "-1"


def _without_meaning(tree: ast.Module) -> set[ast.AST]:
    """Annotations, decorators, messages, what only type checkers see, and what another change does already."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        roots: list[ast.AST | None] = []
        if isinstance(node, ast.FunctionDef):
            arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            roots += [node.returns, *(argument.annotation for argument in arguments), *node.decorator_list]
        elif isinstance(node, ast.AnnAssign):
            roots.append(node.annotation)
        elif isinstance(node, ast.ClassDef):
            roots += node.decorator_list
        elif isinstance(node, ast.Raise):
            roots.append(node.exc)
        elif isinstance(node, ast.JoinedStr):
            roots.append(node)
        elif isinstance(node, ast.keyword) and (_is_last_axis(node) or node.arg == "strict"):
            roots.append(node.value)  # a zip of lists of one length is the same without
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            roots.append(node.operand)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            roots.append(node)
        for root in roots:
            if root is not None:
                found |= set(ast.walk(root))
    return found


def _statements(tree: ast.Module) -> dict[ast.AST, ast.stmt]:
    """The innermost statement that each expression is in."""
    found: dict[ast.AST, ast.stmt] = {}
    for node in ast.walk(tree):  # outer statements come first, inner ones take their place
        if isinstance(node, ast.stmt):
            for below in ast.walk(node):
                found[below] = node
    return found
