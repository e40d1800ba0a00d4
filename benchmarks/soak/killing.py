"""A process that does work in copies of itself, and kills them: at random moments, or at a step in the file system.

It reads what to do from standard input, as JSON, and prints what it found.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from soak.killed_work import WORK, State, Work, begin, state, strays

_STEPS = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.listdir", "os.scandir"})
_STEPS |= {"os.truncate", "ctypes.dlopen"}  # the last comes before two directories change about
_NOBODY = 65534
_DONE, _FAILED = 0, 3


class Steps:
    """Counts steps of this process in the file system, and kills it at one of them."""

    def __init__(self, home: Path, deadly: int | None) -> None:
        self.count, self._home, self._deadly = 0, str(home), deadly
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STEPS and (event == "ctypes.dlopen" or self._is_here(arguments[0])):
            self.count += 1
            if self.count == self._deadly:
                os.kill(os.getpid(), signal.SIGKILL)

    def _is_here(self, path: Any) -> bool:
        if isinstance(path, int) or path is None:
            return False
        text = os.fsdecode(path)
        return not os.path.isabs(text) or text.startswith(self._home)


def forked(work: Callable[[], None], folder: Path, *before: Callable[[], None]) -> int:
    """Do work in a copy of this process, after ``before``; its process id. An error is noted beside the folder."""
    note = folder.parent / "error"
    note.unlink(missing_ok=True)  # of another run
    child = os.fork()
    if child:
        return child
    code = _FAILED
    try:
        os.chdir(folder)
        for step in before:
            step()
        work()
        code = _DONE
    except BaseException as error:
        note.write_text(f"{type(error).__name__}: {error}")
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """The exit code of a process, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def fresh(work: Work, home: Path) -> Iterator[Path]:
    """A folder from which the work starts."""
    folder = home / "here"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    work.prepare(folder)
    yield folder


def whole_run(work: Work, home: Path) -> tuple[State, State, State, float, int]:
    """States before a run, after it and after the next one; how long a run takes, and in how many steps."""
    with fresh(work, home) as folder:
        before, began = state(folder), time.perf_counter()
        assert ended(forked(work.run, folder)) == _DONE, (home / "error").read_text()
        seconds, after = time.perf_counter() - began, state(folder)
    with fresh(work, home) as folder:
        counted = home / "steps"

        def count() -> None:
            steps = Steps(home, None)
            work.run()
            counted.write_text(str(steps.count))

        assert ended(forked(count, folder)) == _DONE, (home / "error").read_text()
        assert not strays(folder), strays(folder)
        assert ended(forked(work.again, folder)) == _DONE, (home / "error").read_text()
        return before, after, state(folder), seconds, int(counted.read_text())


def kill(work: Work, home: Path, known: tuple[State, State, State, float, int], rng: random.Random, at: int) -> str:
    """Kill one run, perhaps the next as well, and let another end; what is wrong, or nothing."""
    before, after, finally_, seconds, steps = known
    with fresh(work, home) as folder:
        task: Callable[[], None] = work.run
        for again in range(1 if rng.random() < 0.6 else 2):
            if at % 2:
                deadly = rng.randrange(1, steps + 1)
                child = forked(task, folder, lambda deadly=deadly: Steps(home, deadly) and None)
            else:
                child = forked(task, folder)
                time.sleep(rng.uniform(0.0, 1.05 * seconds))
                os.kill(child, signal.SIGKILL)
            code = ended(child)
            if code not in (_DONE, -signal.SIGKILL):
                return f"ended with {code}: {(home / 'error').read_text()[:200]}"
            allowed = [before, after] if not again else [before, after, finally_]
            if state(folder) not in allowed:
                return f"neither before nor after: {sorted(state(folder))}, {strays(folder)}"
            task = work.again
        if ended(forked(work.again, folder)) != _DONE:
            return f"the next run failed: {(home / 'error').read_text()[:200]}"
        if state(folder) != finally_:
            return f"the next run made something else: {sorted(state(folder))}"
        return f"strays: {strays(folder)}" if strays(folder) else ""


def _no_room(size: int) -> Callable[[], None]:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    return limit


def _as_nobody(folder: Path) -> Callable[[], None]:
    def become() -> None:
        if os.getuid() == 0:  # root may write anywhere
            os.setgroups([])
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)

    os.chmod(folder, 0o555)
    return become


def _without_streams() -> None:
    for stream in (0, 1, 2):
        os.close(stream)
    sys.stdin = sys.stdout = sys.stderr = None  # type: ignore[assignment]


def trouble(work: Work, home: Path, known: tuple[State, State, State, float, int], kind: str, size: int) -> str:
    """One run with no room, in a folder that cannot be written, or without streams; what is wrong, or nothing."""
    before, after = known[:2]
    with fresh(work, home) as folder:
        if kind == "full disk (tmpfs)":
            return _on_small_disk(work, home, before, after, size)
        way = {"no room": _no_room(size), "no streams": _without_streams}.get(kind) or _as_nobody(folder)
        code = ended(forked(work.run, folder, way))
        os.chmod(folder, 0o755)
        return _judged(folder, home, code, before, after, may_work=kind != "read-only")


def _judged(folder: Path, home: Path, code: int, before: State, after: State, may_work: bool) -> str:
    if code not in (_DONE, _FAILED):
        return f"ended with {code}"
    if code == _DONE and not may_work:
        return "it worked"
    if state(folder) != (after if code == _DONE else before):
        return f"neither before nor after: {sorted(state(folder))}"
    told = (home / "error").read_text() if code == _FAILED else ""
    if code == _FAILED and not told.startswith("OSError: ") and "Errno" not in told:
        return f"another error: {told[:200]}"
    return f"strays: {strays(folder)}" if strays(folder) else ""


def _on_small_disk(work: Work, home: Path, before: State, after: State, size: int) -> str:
    """The same on a disk with so many bytes of room left; only root may have one."""
    disk = home / "disk"
    disk.mkdir(exist_ok=True)
    used = sum(path.stat().st_size + 8192 for path in (home / "here").rglob("*")) + size
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={used}", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        return "not allowed"
    try:
        folder = disk / "here"
        shutil.copytree(home / "here", folder)
        code = ended(forked(work.run, folder))
        note = disk / "error"
        if note.exists():
            (home / "error").write_text(note.read_text() or "OSError: no room even for the note")
            note.unlink()
        elif code == _FAILED:
            (home / "error").write_text("OSError: no room even for the note")
        return _judged(folder, home, code, before, after, may_work=True)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def _varies(kind: str) -> bool:
    return kind in ("no room", "full disk (tmpfs)")


def main() -> None:
    job = json.loads(sys.stdin.read())
    warnings.simplefilter("ignore")
    import spngp.cli.app
    import spngp.outofcore  # noqa: F401 - copies of this process need not import it

    out = os.fdopen(os.dup(1), "w")
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - to the end
    home = Path(job["home"])
    os.chmod(home, 0o777)  # who may not write into the folder may still note why
    begin(home / "begin")
    for place, work in enumerate(WORK):
        if not job["kills"][place]:
            continue
        found = []
        rng = random.Random(1000 * job["seed"] + place)
        with fresh(work, home) as folder:  # once here: copies then import nothing, which another user may not read
            os.chdir(folder)
            work.run()
        os.chdir(home)
        known = whole_run(work, home)
        for at in range(job["kills"][place]):
            found.append(kill(work, home, known, rng, at))
        other = {}
        for kind in ("no room", "read-only", "no streams", "full disk (tmpfs)"):
            sizes = [int(10 ** rng.uniform(2.0, 5.5)) for _ in range(job["troubles"] if _varies(kind) else 1)]
            other[kind] = [trouble(work, home, known, kind, size) for size in sizes]
        told = {"work": work.name, "kills": found, "troubles": other, "seconds": known[3], "steps": known[4]}
        print(json.dumps(told), file=out, flush=True)


if __name__ == "__main__":
    main()
