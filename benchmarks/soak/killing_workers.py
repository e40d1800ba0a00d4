"""A process with a Dask cluster whose workers are killed while they fit, at random moments.

It reads what to do from standard input, as JSON, and prints what it found.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from soak.killed_work import rows, state

_PATIENCE = 30.0  # seconds until a worker that was killed must be there again


def main() -> None:
    job = json.loads(sys.stdin.read())
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    import dask.dataframe as dd

    from spngp.dask import DaskSPNGPRegressor
    from spngp.dask.engine import cluster
    from spngp.kernels import Matern

    rng, home = random.Random(job["seed"]), Path(job["home"])
    home.mkdir()
    frame = rows(4000).to_pandas()
    X, y = (dd.from_pandas(part, npartitions=6) for part in (frame[["a", "b"]], frame["y"]))
    found: list[str] = []
    expected: dict[str, str] = {}
    seconds = 0.0

    def fitted(client: Any) -> tuple[dict[str, str], float]:
        settings = {"max_leaf_size": 30, "overlap": 0.5, "hyperparameters": "fixed", "random_state": 0}
        began = time.perf_counter()
        model = DaskSPNGPRegressor(client, home, kernels=[Matern(1.5)], **settings).fit(X, y)
        return state(model.path_), time.perf_counter() - began

    while len(found) < job["kills"]:  # in another cluster, once Dask has given up a worker that was killed as it began
        with cluster(None, 2, 4.0) as client:
            if not expected:
                expected, seconds = fitted(client)
            while len(found) < job["kills"] and (pids := _processes(client)):
                deadly = threading.Timer(rng.uniform(0.0, seconds), _kill, (rng.choice(pids),))
                deadly.start()
                try:
                    found.append("" if fitted(client)[0] == expected else "another model")
                except Exception as error:
                    found.append(f"{type(error).__name__}: {str(error)[:200]}")
                deadly.join()
    left = sorted(str(path.relative_to(home)) for path in home.rglob(".*"))
    left += [path.name for path in home.iterdir() if sorted(part.name for part in path.iterdir()) != ["model"]]
    told = {"work": "Dask workers, in any stage", "kills": found, "troubles": {"left behind": left}, "seconds": seconds}
    print(json.dumps(told), flush=True)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _processes(client: Any) -> list[int]:
    """The numbers of both workers; none if there are not two that answer, within some time."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        try:
            client.wait_for_workers(2, timeout=_PATIENCE)
            found = client.run(os.getpid)  # one that was killed just now may be known for a while, and not answer
        except (OSError, TimeoutError):
            found = {}
        if len(found) == 2:
            return sorted(found.values())
        time.sleep(0.2)
    return []


if __name__ == "__main__":
    main()
