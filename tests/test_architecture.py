"""The house: layers know only those below them, modules do not need each other in circles, and privacy is kept.

All of it is read off the syntax trees, imports inside functions included; imports for type checkers alone do not count.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import spngp

ROOT = Path(spngp.__file__).parent

# From the ground up; rooms of one layer do not know each other.
LAYERS = [
    {"_version"},
    {"_support"},
    {"box"},
    {"columns"},
    {"_linalg"},
    {"kernels"},
    {"gp"},
    {"mixture_spread", "predictive", "noise"},
    {"transformed"},
    {"metrics", "network"},
    {"structure"},
    {"learning"},
    {"streaming"},
    {"estimators"},
    {"committees", "datasets", "scorers", "tables"},
    {"io", "plotting"},
    {"outofcore", "report"},
    {"dask"},
    {"experiments"},
    {"adapters", "cli"},
    {"__main__"},
]
# What an estimator says for short: `model.save(path)` is `spngp.io.save(model, path)`, and `model.plot()` a display.
# A data set goes to `spngp.outofcore`.
UPWARDS = {
    ("spngp.estimators.base", "spngp.io"),
    ("spngp.estimators.network_model", "spngp.plotting"),
    ("spngp.estimators.regressors", "spngp.outofcore"),
}
# scikit-learn's own, for who writes estimators.
OF_SCIKIT_LEARN = {"_validate_params", "_get_param_names"}
LONGEST_MODULE, LONGEST_FUNCTION, MOST_TOP_LEVEL_MODULES = 350, 50, 12


def module_name(path: Path) -> str:
    parts = ("spngp", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# but what the build writes
PATHS = {module_name(path): path for path in sorted(ROOT.rglob("*.py")) if path.name != "_built.py"}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in PATHS.items()}


def room(module: str) -> str:
    """The part of the package's top level that a module is in."""
    return module.split(".")[1] if "." in module else "spngp"


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only type checkers see."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from statements(node)


def imported(module: str) -> set[str]:
    """Modules of ours that a module imports anywhere."""
    found = set()
    for node in statements(TREES[module]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in TREES}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "spngp":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in TREES else str(node.module))
    return (found & set(TREES)) - {"spngp", module}


def test_every_room_has_a_layer():
    rooms = {room(module) for module in TREES} - {"spngp"}
    assert rooms == set().union(*LAYERS)


@pytest.mark.parametrize("module", sorted(set(TREES) - {"spngp"}))
def test_no_layer_knows_a_higher_one(module):
    height = {name: level for level, rooms in enumerate(LAYERS) for name in rooms}
    for other in imported(module):
        if room(other) != room(module) and (module, ".".join(other.split(".")[:2])) not in UPWARDS:
            assert height[room(other)] < height[room(module)], f"{module} imports {other}"


def test_no_import_cycle():
    edges = {module: {other for other in imported(module) if other != "spngp"} for module in TREES}
    for module, other in UPWARDS:
        edges[module] -= {other}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module not in done:
            for other in edges[module]:
                # a package's own __init__ gathers its modules; a module inside does not need it back
                visit(other, (*path, module))
            done.add(module)

    for module in TREES:
        visit(module, ())


def private_names(tree: ast.AST) -> set[str]:
    """Private names that a module gives to its functions, classes, attributes and variables."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)  # __slots__
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def test_no_room_touches_what_is_private_in_another():
    own: dict[str, set[str]] = {}
    for module, tree in TREES.items():
        own.setdefault(room(module), set()).update(private_names(tree))
    offences = []
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                of_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                if not of_self and node.attr not in own[room(module)] | OF_SCIKIT_LEARN:
                    offences.append(f"{module}:{node.lineno}: {ast.unparse(node)}")
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("spngp"):
                for alias in node.names:
                    inside = room(str(node.module)) == room(module)
                    if alias.name.startswith("_") and not alias.name.startswith("__") and not inside:
                        offences.append(f"{module}:{node.lineno}: from {node.module} import {alias.name}")
    assert not offences, "\n".join(offences)


def test_modules_and_functions_read_in_one_sitting():
    long = [
        f"{name}: {count} lines"
        for name, path in PATHS.items()
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_MODULE
    ]
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                statements = node.body[1:] if ast.get_docstring(node) is not None else node.body
                lines = (node.end_lineno or 0) - statements[0].lineno + 1 if statements else 0
                if lines > LONGEST_FUNCTION:
                    long.append(f"{name}.{node.name}: {lines} lines without its signature and docstring")
    assert not long, "\n".join(long)


def test_the_top_level_is_short():
    modules = [path.name for path in ROOT.glob("*.py")]
    assert len(modules) <= MOST_TOP_LEVEL_MODULES, modules
