"""Directories of processes that are killed go; those of processes that live, of others and of users stay."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

import spngp
from spngp._support import directories
from spngp._support.directories import directory_beside, put_directory, remove_directory, temporary_directory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and locks are POSIX's")
SOURCE = os.path.dirname(os.path.dirname(spngp.__file__))

_HOLDING = """
import sys
from pathlib import Path
from spngp._support.directories import directory_beside, temporary_directory
for made in (temporary_directory(sys.argv[1]), directory_beside(Path(sys.argv[1]) / "model")):
    (made / "file").write_text("")
print("ready", flush=True)
sys.stdin.readline()
"""


def test_what_a_killed_process_left_goes_and_nothing_else(tmp_path):
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    command = [sys.executable, "-c", _HOLDING, str(tmp_path)]
    for name in ("spngp-work-mine", ".model.mine.part", "spngp-0123456789ab"):
        (tmp_path / name).mkdir()
    users = sorted(os.listdir(tmp_path))
    with subprocess.Popen(command, env=environment, text=True, stdin=-1, stdout=-1) as running:
        assert running.stdout.readline() == "ready\n"
        held = sorted(os.listdir(tmp_path))
        assert len(held) == 5
        mine = [temporary_directory(tmp_path), directory_beside(tmp_path / "model")]
        assert sorted(os.listdir(tmp_path)) == sorted([*held, *(path.name for path in mine)])  # it lives
        running.send_signal(signal.SIGKILL)
        running.wait()
    kept = temporary_directory(tmp_path, keep=lambda path: (path / "file").exists())
    assert len(os.listdir(tmp_path)) == 8
    others = [temporary_directory(tmp_path), directory_beside(tmp_path / "model")]
    for path in (*mine, kept, *others):
        remove_directory(path)
    assert sorted(os.listdir(tmp_path)) == users


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_directory_takes_the_place_of_another(exchanges, tmp_path, monkeypatch):
    if not exchanges:
        monkeypatch.setattr(directories, "_exchanged", lambda one, other: False)
    target = tmp_path / "model"
    for text in ("first", "second"):
        new = directory_beside(target)
        (new / "file").write_text(text)
        old = put_directory(new, target)
        assert (target / "file").read_text() == text
        assert (old is None) == (text == "first")
        if old is not None:
            assert (old / "file").read_text() == "first"
            shutil.rmtree(old)
    assert os.listdir(tmp_path) == ["model"]
