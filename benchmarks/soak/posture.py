"""Supply and posture: what the package may not do, what it depends on and why, wheels that can be built again."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from soak import Effort, Table
from soak.page import ROOT

SAMPLE = 0.01
PACKAGE = ROOT / "src" / "spngp"
# Modules that run what they are given, or make objects of any class.
MODULES = frozenset(
    {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml", "runpy", "code"}
)
MODULES |= {"subprocess", "multiprocessing", "pty", "imp", "telnetlib", "xmlrpc", "jinja2", "codeop", "pdb"}
CALLS = frozenset({"eval", "exec", "compile", "__import__", "breakpoint", "input"})
ATTRIBUTES = frozenset({"system", "popen", "execv", "execve", "execvp", "spawnv", "posix_spawn", "extractall", "fork"})
# Where the rules have exceptions, and why.
EXCEPTIONS = {
    ("spngp._support.provenance", "subprocess"): "asks git which commit a result is of: a fixed command, in a checkout",
    ("spngp.experiments.measuring", "multiprocessing"): "measures the memory of a fit in a process of its own",
    ("spngp", "import_module"): "public names, from a fixed table, on first use",
    ("spngp._linalg.compiled", "import_module"): "our own compiled library, which may be missing",
    ("spngp.experiments", "import_module"): "an experiment by its name, from a fixed table",
    ("spngp.io.classes", "import_module"): "classes of model files, from a fixed table",
    ("spngp.io.decoding", "import_module"): "kernels of scikit-learn, from a fixed table",
}


def module_name(path: Path) -> str:
    parts = ("spngp", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def findings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of everything in a module that the rules are about."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").split(".")[0] in MODULES:
                yield node.lineno, str(node.module)
        elif isinstance(node, ast.keyword):
            loose = not (isinstance(node.value, ast.Constant) and node.value.value is False)
            if node.arg in ("allow_pickle", "shell") and loose:
                yield node.value.lineno, str(node.arg)
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in CALLS | {"import_module"}:
                yield node.lineno, called.id
            elif isinstance(called, ast.Attribute) and called.attr in ATTRIBUTES | {"import_module"}:
                yield node.lineno, called.attr
            elif isinstance(called, ast.Attribute) and called.attr == "load" and _is_numpy(called.value):
                names = {keyword.arg for keyword in node.keywords}
                if not names & {"allow_pickle", "mmap_mode"}:  # both refuse objects
                    yield node.lineno, "np.load"


def _is_numpy(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("np", "numpy")


def forbidden() -> tuple[int, list[str], set[tuple[str, str]]]:
    """Modules that were read, what they may not have, and which exceptions were met."""
    paths, wrong, met = sorted(PACKAGE.rglob("*.py")), [], set()
    for path in paths:
        name = module_name(path)
        for line, what in findings(ast.parse(path.read_text(encoding="utf-8"))):
            if (name, what) in EXCEPTIONS:
                met.add((name, what))
            else:
                wrong.append(f"{name}:{line}: {what}")
    return len(paths), wrong, met


def dependencies() -> set[str]:
    """Names of all packages that users may get: of the core and of the extras that are not for developers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    given = list(project["build-system"]["requires"]) + list(project["project"]["dependencies"])
    for extra, names in project["project"]["optional-dependencies"].items():
        given += names if extra not in ("dev", "test", "bench") else []
    found = {re.split(r"[\[<>=;! ]", name, maxsplit=1)[0].lower() for name in given}
    return found - {"spngp"}


def explained() -> set[str]:
    """Packages that ``SECURITY.md`` gives a reason for."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    return {found.lower() for found in re.findall(r"^\| `([\w.-]+)` \|", text, re.MULTILINE)}


def wheel(source: Path, folder: Path) -> Path:
    """Build a wheel of a source tree with what this environment has."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1750000000", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


def two_wheels(home: Path) -> tuple[str, bool]:
    """Wheels of the committed sources, built in two folders of different names: what they are, and whether equal."""
    built = []
    for name in ("one", "another, further away"):
        source = home / name / "source"
        source.mkdir(parents=True)
        packed = subprocess.run(["git", "-C", str(ROOT), "archive", "HEAD"], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(source)], input=packed, check=True)
        built.append(wheel(source, home / name))
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in built}
    told = f"{built[0].name}, {built[0].stat().st_size / 1e3:.0f} kB, sha256 {min(digests)[:16]}…"
    if len(digests) > 1:
        one, other = (zipfile.ZipFile(path) for path in built)
        differing = [name for name in one.namelist() if one.read(name) != other.read(name)]
        told += f"; differing: {', '.join(differing) or 'the archive itself'}"
    return told, len(digests) == 1


def run(effort: Effort) -> Table:
    count, wrong, met = forbidden()
    missing, idle = sorted(dependencies() - explained()), sorted(explained() - dependencies())
    rows = [
        ["modules without pickle, eval, exec, YAML, processes", str(count), "; ".join(wrong) or "none found"],
        ["exceptions, each with its reason", str(len(EXCEPTIONS)), "; ".join(f"{n}: {w}" for n, w in sorted(met))],
        ["dependencies with a reason in SECURITY.md", str(len(dependencies())), ", ".join(missing + idle) or "all"],
    ]
    passed = not wrong and met == set(EXCEPTIONS) and not missing and not idle
    if effort.share >= 0.5:
        with tempfile.TemporaryDirectory() as folder:
            told, equal = two_wheels(Path(folder))
        rows.append(["wheels built twice, in different folders", "2", f"{'equal' if equal else 'DIFFERENT'}: {told}"])
        passed = passed and equal
    return Table(
        "Supply and posture",
        ("what", "number", "found"),
        rows,
        passed,
        f"{len(wrong)} of {count} modules break a rule; {len(missing)} of {len(dependencies())} dependencies without a "
        f"reason{'; wheels ' + ('equal' if rows[-1][2].startswith('equal') else 'differ') if len(rows) > 3 else ''}",
        (
            "That opening a file runs nothing is shown by the section on files: while mutants are opened, Python's "
            "audit events are watched, and an import, a compilation, another process, a library, a connection or a "
            "file opened for writing outside the folder is a fault.",
            "Reasons of the exceptions: " + "; ".join(f"`{n}`, {why}" for (n, _), why in EXCEPTIONS.items()) + ".",
        ),
    )
