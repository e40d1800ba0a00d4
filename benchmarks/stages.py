"""Where a fit spends its time: seconds by the clock and of CPU, stage by stage.

    python benchmarks/stages.py --rows 1000000 --hyperparameters adaptive

Rows as in ``scale.py``, default settings. A stage is a function of ``spngp.learning`` or of what it calls, timed from
outside; ``idle`` is the share of the threads' time that was spent waiting, and ``waits`` how often a thread did.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import reporting
from spngp import SPNGPRegressor
from spngp.datasets import regional
from spngp.learning import doubt, flow, ground, learnt, tied
from spngp.learning import regional as by_regions
from spngp.network import conditioning
from spngp.structure.strategies import Compact

STAGES: list[tuple[ModuleType | type, str, str]] = [
    (Compact, "regions", "cutting"),
    (tied, "fit", "tied parameters"),
    (tied, "search", "search for what they missed"),
    (ground, "cut_by_noise", "cuts by noise"),
    (ground, "curvatures_of", "curvature"),
    (by_regions, "learn_experts", "experts"),
    (conditioning, "condition", "evidence of own rows"),
    (doubt, "outliers", "outliers"),
    (learnt, "NearestContext", "context: index"),
    (conditioning, "add_context", "context: search and factors"),
    (flow, "noise_shapes", "shape of the noise"),
]


def clocks() -> tuple[float, float, float]:
    """Seconds by the clock, seconds of CPU, and how often a thread gave up its core to wait."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), time.process_time(), usage.ru_nvcsw


class Stopwatch:
    """Adds up what functions take."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}

    def watch(self, holder: Any, name: str, stage: str) -> None:
        """From now on, count what the function ``name`` of ``holder`` takes as ``stage``."""
        function: Callable[..., Any] = getattr(holder, name)

        def timed(*arguments: Any, **options: Any) -> Any:
            start = clocks()
            try:
                return function(*arguments, **options)
            finally:
                spent = self.spent.setdefault(stage, [0.0, 0.0, 0.0, 0.0])
                for i, now in enumerate(clocks()):
                    spent[i] += now - start[i]
                spent[3] += 1

        setattr(holder, name, timed)


def main(argv: list[str] | None = None) -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--hyperparameters", default="adaptive")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--max-leaf-size", type=int, default=500)
    arguments = parser.parse_args(argv)
    rows = regional(arguments.rows, random_state=0)
    stopwatch = Stopwatch()
    for holder, name, stage in STAGES:
        stopwatch.watch(holder, name, stage)
    model = SPNGPRegressor(
        hyperparameters=arguments.hyperparameters,
        max_leaf_size=arguments.max_leaf_size,
        n_jobs=arguments.threads,
        random_state=0,
    )
    start = clocks()
    model.fit(rows.X, rows.Y[:, 0])
    total = [now - then for now, then in zip(clocks(), start, strict=True)]
    rest = [all_ - sum(spent[i] for spent in stopwatch.spent.values()) for i, all_ in enumerate(total)]
    reporting.print_head(["stage", "calls", "s", "cpu s", "idle", "waits"])
    for stage, (seconds, busy, waits, calls) in [*stopwatch.spent.items(), ("rest", [*rest, 1]), ("all", [*total, 1])]:
        idle = max(0.0, 1.0 - busy / (arguments.threads * max(seconds, 1e-9)))
        reporting.print_row(
            [stage, f"{calls:.0f}", f"{seconds:.1f}", f"{busy:.1f}", f"{100 * idle:.0f} %", f"{waits:,.0f}"]
        )
    leaves = {placed.box: placed.leaf.gp for placed in model.network_.responsibilities()}
    print(f"{len(leaves)} regions of {arguments.rows / len(leaves):.0f} rows")
    return 0


if __name__ == "__main__":
    reporting.run(main)
