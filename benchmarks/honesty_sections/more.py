"""Whether more rows always help: the first kind of the section on the search, with ever more of them."""

from __future__ import annotations

from collections.abc import Iterator

from honesty_sections import Settings
from honesty_sections.search import PROBLEMS, fitted

ROWS = (5000, 50_000, 400_000)
FREQUENCY, SEED = 15.0, 0


def more(settings: Settings) -> Iterator[str]:
    """A sine along one input of eight, with ever more rows: what is lost must fall at every step."""
    yield "| rows | RMSE to the truth | nats lost | CPU s |"
    yield "|---|---|---|---|"
    for n in ROWS[:1] if settings.quick else ROWS:
        rmse, lost, seconds = fitted(PROBLEMS[0], n, FREQUENCY, SEED, settings.n_jobs)
        yield f"| {n} | {rmse:.4f} | {lost:.4f} | {seconds:.0f} |"
