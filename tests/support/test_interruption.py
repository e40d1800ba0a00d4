"""Ctrl-C during a parallel fit: it stops at once, no thread goes on, and the model is as before."""

import signal
import subprocess
import sys
import time

import pytest

CODE = """
import sys, threading, time
import numpy as np
from spngp import SPNGPRegressor

rng = np.random.default_rng(0)
X = rng.standard_normal((20_000, 4))
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(len(X))
model = SPNGPRegressor(n_jobs=2, random_state=0)
print("begin", flush=True)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    caught = time.time()
    while threading.active_count() > 1 and time.time() < caught + 5:  # what was begun may end
        time.sleep(0.01)
    print("stopped", caught, threading.active_count(), hasattr(model, "_learnt"), flush=True)
else:
    print("finished", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of this kind are POSIX")
@pytest.mark.parametrize("seconds", [0.3, 2.0])
def test_interrupting_a_parallel_fit(seconds):
    with subprocess.Popen([sys.executable, "-c", CODE], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begin\n"
        time.sleep(seconds)
        sent = time.time()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        word, *figures = out.split()
        assert word == "stopped"
        caught, threads, fitted = float(figures[0]), int(figures[1]), figures[2]
        assert process.returncode == 0
        assert (threads, fitted) == (1, "False")
        assert caught - sent < 10  # two seconds on a machine of its own; tests may share theirs
