"""A process with a Dask cluster whose workers are killed while they fit, at random moments.

It reads what to do from standard input, as JSON, and prints what it found.
"""

from __future__ import annotations

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
    found = []
    with cluster(None, 2, 4.0) as client:

        def fitted() -> tuple[dict[str, str], float]:
            settings = {"max_leaf_size": 30, "overlap": 0.5, "hyperparameters": "fixed", "random_state": 0}
            began = time.perf_counter()
            model = DaskSPNGPRegressor(client, home, kernels=[Matern(1.5)], **settings).fit(X, y)
            return state(model.path_), time.perf_counter() - began

        expected, seconds = fitted()
        for _ in range(job["kills"]):
            pid = rng.choice(_processes(client))
            deadly = threading.Timer(rng.uniform(0.0, seconds), os.kill, (pid, signal.SIGKILL))
            deadly.start()
            try:
                found.append("" if fitted()[0] == expected else "another model")
            except Exception as error:
                found.append(f"{type(error).__name__}: {str(error)[:200]}")
            deadly.join()
    left = sorted(str(path.relative_to(home)) for path in home.rglob(".*"))
    left += [path.name for path in home.iterdir() if sorted(part.name for part in path.iterdir()) != ["model"]]
    told = {"work": "Dask workers, in any stage", "kills": found, "troubles": {"left behind": left}, "seconds": seconds}
    print(json.dumps(told), flush=True)


def _processes(client: Any) -> list[int]:
    """The numbers of both workers; one that was killed just now may be known for a while, and not answer."""
    while True:
        client.wait_for_workers(2)
        try:
            found = client.run(os.getpid)
        except OSError:
            found = {}
        if len(found) == 2:
            return sorted(found.values())
        time.sleep(0.2)


if __name__ == "__main__":
    main()
