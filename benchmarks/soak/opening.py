"""A process of its own that opens many mutants, so that a crash, a hang or too much memory is seen from outside.

It reads what to do from standard input, as JSON, and prints what became of the mutants. Before each it notes its number
in a file, so that whoever finds it dead knows of which.
"""

from __future__ import annotations

import codecs
import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from soak.watching import Watch

SECONDS = 30.0  # of processor time that a mutant may take
_ALL_SECONDS = 1800  # that a process may take for all; one that hangs where no signal reaches it ends then
_ROOM = 1 << 30  # bytes beyond what the process has when it begins: nobody here needs as much


class Hanging(BaseException):
    """A mutant took too long."""


def most_memory() -> int:
    """Bytes, the most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform.startswith("linux") else 0
    if pages:
        limit = pages * resource.getpagesize() + _ROOM
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _too_long(*_: Any) -> None:
    raise Hanging


def survey(
    first: int, count: int, case: Callable[[int], Iterator[str]], note: Path, describe: Callable[[], str]
) -> dict[str, Any]:
    """What became of so many mutants: ``case(number)`` makes one and yields what became of it, step by step.

    An error that leaves it is a fault; so is a hang.
    """
    counts: dict[str, int] = {}
    faults: list[list[str]] = []
    signal.signal(signal.SIGVTALRM, _too_long)
    for number in range(first, first + count):
        note.write_text(str(number))
        outcome = "made"
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            for outcome in case(number):  # noqa: B007 - the last one counts
                pass
        except (Exception, Hanging) as error:
            text = f"{type(error).__name__}: {str(error)[:300]}" if not isinstance(error, UnicodeError) else repr(error)
            faults.append([str(number), f"after it was {outcome}", text, describe()[:600]])
            outcome = "FAULT"
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        counts[outcome] = counts.get(outcome, 0) + 1
    return {"counts": counts, "faults": faults}


def models(job: dict[str, Any]) -> dict[str, Any]:
    """Mutants of one model file, or of one file of a directory."""
    import spngp
    from soak.honest_models import X_NEW
    from soak.model_mutants import KINDS, NotFinite, Parts, raised_by_us, use
    from soak.shard_mutants import Shards
    from spngp.io import ModelFileError

    folder = Path(job["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    told = [""]
    shards = Shards(Path(job["honest"]), folder) if job["model"] == "shards" else None
    honest = None if shards else Path(job["honest"]).read_bytes()
    parts = None if shards else Parts.of(job["honest"])

    def case(number: int) -> Iterator[str]:
        rng = np.random.default_rng([job["seed"], job["place"], number])
        path = folder / "mutant"
        if shards is not None:
            path, told[0] = shards.mutant(job["kind"], rng)
        else:
            changed, told[0] = KINDS[job["kind"]](honest, parts, rng) if job["kind"] != "none" else (honest, "honest")
            path.write_bytes(changed)
        try:
            model = spngp.load(path, verify=True)
        except ModelFileError as error:
            _check_message(str(error), str(path))
            yield "refused"
            if number % 10 == 0:  # without being asked to check all: noticed at the latest when it would matter
                try:
                    _use_unverified(spngp.load(path), X_NEW, folder / "again", use, shards is not None)
                except (ModelFileError, FileNotFoundError):
                    pass
                except Exception as later:
                    if not raised_by_us(later):
                        raise
            return
        yield "opened"
        try:
            _use_unverified(model, X_NEW, folder / "again", use, shards is not None)
            yield "of use"
        except NotFinite:
            if job["kind"] != "contents" or " are 1e+" not in told[0]:
                raise
            yield "of use, but for overflow"  # of a number that an honest file might hold
        except Exception as error:
            if not raised_by_us(error):
                raise
            if isinstance(error, ModelFileError):
                raise RuntimeError("damage was found later") from error
            yield "of use, but for a request"

    return survey(job["first"], job["count"], case, folder / "number", lambda: told[0])


def _check_message(text: str, path: str) -> None:
    assert "\n" not in text, "a message of several lines"
    assert path in text, "a message that does not name the file"


def _use_unverified(model: Any, X_new: Any, again: Path, use: Callable[..., None], in_shards: bool) -> None:
    if not in_shards:
        use(model, X_new, again)
        return
    import pyarrow as pa

    from soak.model_mutants import NotFinite

    rows = np.random.default_rng(0).normal(size=(60, 2))
    table = pa.table({"a": rows[:, 0], "b": rows[:, 1]})
    mean, std = model.predict(table, return_std=True)
    if not np.isfinite([mean, std]).all():
        raise NotFinite("a prediction is not finite")
    repr(model)


def tables(job: dict[str, Any]) -> dict[str, Any]:
    """Mutants of tables and of files of settings, given to the command line."""
    from soak.table_mutants import cases

    folder = Path(job["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    told = [""]
    return survey(job["first"], job["count"], cases(job, folder, told), folder / "number", lambda: told[0])


_OF = {"models": models, "tables": tables}


def _import_all() -> None:
    """What is imported late, and annotations that are evaluated late, are no doing of a file's."""
    import pkgutil

    import spngp
    from spngp.io.classes import CLASSES
    from spngp.io.fields import check_attributes

    for module in pkgutil.walk_packages(spngp.__path__, "spngp."):
        if not module.name.startswith(("spngp.__main__", "spngp.dask", "spngp.adapters", "spngp.plotting")):
            importlib.import_module(module.name)
    for name in CLASSES:
        with contextlib.suppress(ValueError):
            check_attributes(name, {})
    # those of tables that are written in another coding, by soak.table_mutants itself
    for name in (
        "ascii",
        "latin-1",
        "cp1252",
        "utf-7",
        "utf-8-sig",
        "utf-16",
        "utf-16-le",
        "utf-32",
        "unicode_escape",
        "idna",
    ):
        codecs.lookup(name)
    for name in ("_strptime", "bz2", "calendar", "decimal", "difflib", "linecache", "lzma", "zoneinfo"):
        importlib.import_module(name)


def main() -> None:
    """Do all jobs, after the honest files of each: what these take is the measure of memory."""
    jobs = json.loads(sys.stdin.read())
    warnings.simplefilter("ignore")
    _import_all()
    _limit_memory()
    resource.setrlimit(resource.RLIMIT_CPU, (_ALL_SECONDS, _ALL_SECONDS + 5))
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - to the end
    honest = {json.dumps([job["of"], job["model"]]): job for job in jobs}
    faults = []
    for job in honest.values():
        found = _OF[job["of"]]({**job, "kind": "none", "first": 0, "count": 1})
        faults += [["honest", *fault] for fault in found["faults"]]
    memory = [most_memory()]
    watch = Watch(Path(jobs[0]["folder"]).parent)
    for place, job in enumerate(jobs):
        found = {"job": place, **_OF[job["of"]](job)}
        faults += [["watched", job["model"], job["kind"], event] for event in watch.seen[:5]]
        watch.seen.clear()
        print(json.dumps(found), file=sys.__stdout__, flush=True)
    print(json.dumps({"memory": [*memory, most_memory()], "faults": faults}), file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    main()
