"""``spngp predict`` as a real process, between pipes and disks that are slow, full or closed."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import spngp

N_ROWS = 6000  # more text than the 64 kB that a pipe holds


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    x = np.linspace(0.0, 6.0, 30)
    spngp.GPRegressor(hyperparameters="fixed").fit(x[:, np.newaxis], np.sin(x)).save(folder / "gp.spngp")
    (folder / "new.csv").write_text("a\n" + "".join(f"{i % 60 / 10}\n" for i in range(N_ROWS)))
    return folder


def start(folder, data="new.csv", unbuffered=True, **options):
    environment = {**os.environ, "PYTHONPATH": str(Path(spngp.__file__).parents[1])}
    environment["PYTHONUNBUFFERED"] = "1" if unbuffered else ""
    command = [sys.executable, "-m", "spngp", "predict", str(folder / "gp.spngp"), data]
    return subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True, **options)


def test_a_full_disk_is_an_error(folder):
    with open("/dev/full", "wb") as full, start(folder, unbuffered=False, stdout=full) as process:
        _, told = process.communicate()
    assert (process.returncode, told) == (2, "spngp: standard output: No space left on device\n")


@pytest.mark.long
def test_a_disk_that_fills_up_half_way_is_an_error(folder, tmp_path):
    def limit() -> None:  # a file that takes part of what is written to it, as a disk does that fills up
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    with open(tmp_path / "out.csv", "wb") as out, start(folder, stdout=out, preexec_fn=limit) as process:
        _, told = process.communicate()
    assert (process.returncode, told) == (2, "spngp: standard output: File too large\n")


@pytest.mark.parametrize("unbuffered", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_pipe_that_does_not_block_gets_every_row(folder, unbuffered):
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with start(folder, unbuffered=unbuffered, stdout=writing) as process:
        os.close(writing)
        with open(reading, "rb") as pipe:
            lines = pipe.read().splitlines()
        told = process.stderr.read()
    assert (process.returncode, told, len(lines)) == (0, "", N_ROWS + 1)


def test_a_reader_that_has_seen_enough_gets_no_message(folder):
    with start(folder, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == "a,y_mean,y_std\n"
        process.stdout.close()
        told = process.stderr.read()
    assert (process.returncode, told) == (1, "")


@pytest.mark.long
def test_an_error_while_more_input_is_to_come_ends_in_one_line(folder):
    """Nothing may still be reading the input in the background: it would abort the process at its end."""
    reading, writing = os.pipe()
    with start(folder, "-", stdin=reading, stdout=subprocess.DEVNULL) as process:
        os.close(reading)
        with open(writing, "wb", buffering=0) as pipe:
            with contextlib.suppress(BrokenPipeError):  # it need not read all that
                for _ in range(50):
                    pipe.write(b"a\nx\n" + b"1.5\n" * 25_000)
            told = process.stderr.read()
            process.wait()
    assert (process.returncode, len(told.splitlines())) == (2, 1)
    assert told.startswith("spngp: standard input, row 1, column 'a': 'x' is not a number")
