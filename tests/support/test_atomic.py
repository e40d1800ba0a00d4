"""Files that are whole or not there, when writers are killed, run at once, or have no room."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import spngp
from spngp import GPRegressor
from spngp._support.atomic import replacing
from spngp.io.tensors import TensorFile, checksum

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and locks are POSIX's")

SOURCE = os.path.dirname(os.path.dirname(spngp.__file__))
ENVIRONMENT = {**os.environ, "PYTHONPATH": SOURCE}


def model_of(n_rows):
    rows = np.linspace(0.0, 6.0, n_rows)[:, np.newaxis]
    return GPRegressor(hyperparameters="fixed").fit(rows, np.sin(rows[:, 0]))


@contextlib.contextmanager
def process(code, *arguments):
    """Python code in a process of its own, which says "ready" when it is; killed at the end."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=ENVIRONMENT, text=True, **pipes) as running:
        try:
            assert running.stdout.readline() == "ready\n", running.stderr.read()
            yield running
        finally:
            running.kill()


def parts(directory):
    return sorted(item.name for item in directory.iterdir() if item.name.endswith(".part"))


# Another process replaces what is being read.

_REPLACING = """
import os, sys
one, other, path = sys.argv[1:]
contents = [open(name, "rb").read() for name in (one, other)]
print("ready", flush=True)
i = 0
while True:
    i += 1
    with open(path + ".new", "wb") as file:
        file.write(contents[i % 2])
    os.replace(path + ".new", path)
"""


def test_a_file_that_is_replaced_while_it_is_read_is_never_called_damaged(tmp_path):
    for name, n_rows in (("one", 40), ("other", 300)):
        model_of(n_rows).save(tmp_path / name)
    path = tmp_path / "m"
    path.write_bytes((tmp_path / "one").read_bytes())
    with process(_REPLACING, tmp_path / "one", tmp_path / "other", path):
        sizes = {spngp.load(path, verify=True)._learnt.X.shape[0] for _ in range(150)}
    assert sizes == {40, 300}  # it was replaced, and read before and after


def test_checking_reads_the_file_that_was_opened(tmp_path):
    model_of(300).save(tmp_path / "m")
    model_of(40).save(tmp_path / "other")
    file = TensorFile(tmp_path / "m")
    file.checksums = {name: checksum(file.array(name)) for name in file.layout()}
    os.replace(tmp_path / "other", tmp_path / "m")
    file.check_all()


# Writers that are killed.

_WRITING = """
import sys, time
from spngp._support.atomic import replacing
with replacing(sys.argv[1]) as temporary:
    with open(temporary, "wb") as file:
        file.write(b"half a file")
        file.flush()
        print("ready", flush=True)
        sys.stdin.readline()
        file.write(b", and the rest")
"""


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_writer_left_goes_with_the_next_save(sent, tmp_path):
    path = tmp_path / "m.spngp"
    for _ in range(2):
        with process(_WRITING, path) as writer:
            writer.send_signal(sent)
            writer.wait()
        assert len(parts(tmp_path)) == 1  # those of one killed earlier are gone already
    (tmp_path / ".other.spngp.0123456789ab.part").touch()  # another file's, and a name that only looks like ours
    (tmp_path / ".m.spngp.of-mine.part").touch()
    with replacing(path) as temporary:
        temporary.write_text("whole")
    assert parts(tmp_path) == [".m.spngp.of-mine.part", ".other.spngp.0123456789ab.part"]
    assert path.read_text() == "whole"


def test_two_writers_of_one_file_leave_each_other_alone(tmp_path):
    path = tmp_path / "m"
    with process(_WRITING, path) as writer:
        before = parts(tmp_path)
        with replacing(path) as temporary:
            temporary.write_text("the first to end")
        assert path.read_text() == "the first to end"
        assert parts(tmp_path) == before
        writer.communicate("\n", timeout=60)
        assert writer.returncode == 0
    assert path.read_text() == "half a file, and the rest"
    assert parts(tmp_path) == []


_CONTENDING = """
import sys
from spngp._support.atomic import replacing
print("ready", flush=True)
for i in range(150):
    with replacing(sys.argv[1]) as temporary:
        temporary.write_text(f"{sys.argv[2]} {i} whole")
"""


def test_many_saves_of_one_file_at_once(tmp_path):
    path = tmp_path / "m"
    with process(_CONTENDING, path, "one") as one, process(_CONTENDING, path, "two") as two:
        for writer in (one, two):
            _, error = writer.communicate(timeout=120)
            assert (writer.returncode, error) == (0, "")
    assert path.read_text() in ("one 149 whole", "two 149 whole")
    assert parts(tmp_path) == []


def test_sigterm_ends_a_command_in_order(tmp_path):
    model_of(60).save(tmp_path / "m.spngp")
    rows = "\n".join(["x", *(f"{x:.6f}" for x in np.linspace(0.0, 6.0, 400_000))])
    (tmp_path / "rows.csv").write_text(rows + "\n")
    command = [sys.executable, "-m", "spngp", "predict", "m.spngp", "rows.csv", "-o", "out.csv"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, **pipes) as running:
        while not any(item.stat().st_size for item in tmp_path.glob(".out.csv.*.part")):
            assert running.poll() is None, running.stderr.read()
            time.sleep(0.001)
        running.send_signal(signal.SIGTERM)
        _, error = running.communicate(timeout=60)
    assert (running.returncode, error) == (143, "spngp: terminated\n")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["m.spngp", "rows.csv"]


# Names and modes.


@pytest.mark.parametrize("name", ["a" * 255, "ü" * 127 + "b", "模" * 85, "x" + "模" * 84 + "yz", "é" * 120])
def test_the_longest_names(name, tmp_path):
    assert len(name.encode()) in (255, 240)
    for text in ("first", "second"):
        with replacing(tmp_path / name) as temporary:
            temporary.write_text(text)
    assert [(item.name, item.read_text()) for item in tmp_path.iterdir()] == [(name, "second")]


def test_a_name_that_is_too_long_is_told_by_its_own(tmp_path):
    with pytest.raises(OSError, match=r"File name too long: .*aaa'$"), replacing(tmp_path / ("a" * 256)):
        pass


def test_long_names_that_begin_alike_do_not_remove_each_others_parts(tmp_path):
    with process(_WRITING, tmp_path / ("a" * 250)) as writer:
        writer.kill()
        writer.wait()
    with replacing(tmp_path / ("a" * 251)) as temporary:
        temporary.write_text("")
    assert len(parts(tmp_path)) == 1
    with replacing(tmp_path / ("a" * 250)) as temporary:
        temporary.write_text("")
    assert parts(tmp_path) == []


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_gets_the_mode_that_the_umask_leaves(mask, tmp_path):
    code = "import os, sys; os.umask(int(sys.argv[2]))\nfrom spngp._support.atomic import replacing\n"
    code += "with replacing(sys.argv[1]) as temporary:\n    temporary.write_text('')\n"
    subprocess.run([sys.executable, "-c", code, tmp_path / "m", str(mask)], env=ENVIRONMENT, check=True)
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_private_file_is_private_while_it_is_written_again(tmp_path):
    (tmp_path / "m").touch(0o600)
    with replacing(tmp_path / "m") as temporary:
        assert temporary.stat().st_mode & 0o777 == 0o600
        temporary.write_text("")
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o600
    (tmp_path / "m").chmod(0o444)
    with replacing(tmp_path / "m") as temporary:
        temporary.write_text("")
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o444


def test_the_umask_is_never_touched(tmp_path):
    """It can be read only by changing it, and for that moment files that other threads make would be open to all."""
    called = []
    sys.setprofile(lambda frame, event, argument: called.append(argument) if event == "c_call" else None)
    try:
        with replacing(tmp_path / "m") as temporary:
            temporary.write_text("")
    finally:
        sys.setprofile(None)
    assert os.replace in called
    assert os.umask not in called


# No room.

_NO_ROOM = """
import resource, sys
import spngp
model = spngp.load(sys.argv[1])
model.ballast_ = __import__("numpy").arange(100_000.0)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
print("ready", flush=True)
try:
    model.save(sys.argv[1])
except OSError as error:
    print(error.errno, error.filename)
"""


def test_a_full_disk_leaves_the_old_file_whole_and_nothing_else(tmp_path):
    path = tmp_path / "m"
    model_of(40).save(path)
    before = path.read_bytes()
    with process(_NO_ROOM, path) as writer:
        out, error = writer.communicate(timeout=60)
    assert (out, error) == (f"27 {path}\n", "")  # EFBIG; on a full disk it is ENOSPC
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
