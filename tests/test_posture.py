"""What the package may not do, and that the rules and the watch would notice it."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import soak.posture as posture

ROOT = Path(__file__).parents[1]


def test_no_module_runs_what_it_is_given():
    count, wrong, met = posture.forbidden()
    assert count > 200
    assert not wrong, "\n".join(wrong)
    assert met == set(posture.EXCEPTIONS)  # none of them is idle


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import pickle", "pickle"),
        ("from pickle import loads", "pickle"),
        ("import multiprocessing.pool", "multiprocessing.pool"),
        ("eval('1')", "eval"),
        ("def f():\n    exec(text)", "exec"),
        ("import os\nos.system('ls')", "system"),
        ("import numpy as np\nnp.load(path)", "np.load"),
        ("import numpy as np\nnp.load(path, allow_pickle=True)", "allow_pickle"),
        ("import numpy as np\nnp.load(path, allow_pickle=given)", "allow_pickle"),
        ("run(command, shell=True)", "shell"),
        ("archive.extractall(folder)", "extractall"),
        ("importlib.import_module(name)", "import_module"),
    ],
)
def test_the_rules_notice(code, found):
    assert [what for _, what in posture.findings(ast.parse(code))] == [found]


def test_what_is_safe_is_not_found():
    code = "import json\nnp.load(path, allow_pickle=False)\nmodel.load(path)\nre.compile('a')\nspngp.load(path)"
    assert list(posture.findings(ast.parse(code))) == []


def test_every_dependency_has_a_reason():
    assert posture.explained() == posture.dependencies()


_WATCHED = """
import os, pickle, socket, sys
from pathlib import Path
from soak.watching import Watch

class Hostile:
    def __reduce__(self):
        return os.system, ("true",)

payload, home = pickle.dumps(Hostile()), Path(sys.argv[1])
watch = Watch(home)
(home / "mine").write_text("")
open(os.devnull, "w").close()
assert not watch.seen, watch.seen
pickle.loads(payload)
eval("1 + 1")
import colorsys
socket.socket().close()
(home.parent / "others").write_text("")
watch.end()
eval("2")
print("\\n".join(watch.seen))
"""


def test_the_watch_notices(tmp_path):
    (tmp_path / "home").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "benchmarks")}
    command = [sys.executable, "-c", _WATCHED, str(tmp_path / "home")]
    seen = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    for event in ("pickle.find_class", "os.system", "compile", "exec", "import colorsys", "socket.__new__"):
        assert any(line.startswith(event) for line in seen.splitlines()), (event, seen)
    assert f"open {tmp_path / 'others'} to write" in seen
