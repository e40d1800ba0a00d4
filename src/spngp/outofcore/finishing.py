"""The end of a fit out of core: weights and noise from what cells tell, and a directory that is a model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np

from spngp._support.types import Array, Indices
from spngp.estimators import SPNGPRegressor
from spngp.estimators.elsewhere import learnt_in_shards
from spngp.io.models import load
from spngp.io.shards import MODEL, Directory, is_model_directory, put_in_place, write_about
from spngp.learning.noise_shapes import ShapeFound, Weighed, shapes_by
from spngp.learning.sharded import Sharded
from spngp.learning.surprises import variances_by
from spngp.network import Leaf
from spngp.noise import GAUSSIAN
from spngp.outofcore.spill import aside, discard
from spngp.outofcore.work import Summary, Work

_DONORS = 10_000  # rows that a model keeps for rows that lack inputs
_FINISHED = "finished"  # the digest of the file about the model, from before it takes its place


def finished(
    model: SPNGPRegressor,
    output: Path,
    work: Work,
    learnt: Sequence[Summary],
    seen: Sequence[Summary],
    counts: Indices,
    log_slopes: float,
    rng: np.random.Generator,
) -> SPNGPRegressor:
    """Write the file about the model and put the directory in its place; the model, opened from there."""
    frame = work.known()
    plan = frame.ground.plan
    learns = plan.learns_noise_shape and plan.hyperparameters != "fixed"
    widens = np.any([one["widens"] for one in learnt], axis=0)
    found = _noise_shapes(work, seen, widens, learns, rng)
    usual = [one.variance for one in found]
    sample = np.load(work.directory / "sample.npy", mmap_mode="r")
    donors = plan.units.inputs.invert(sample[:: -(-sample.shape[0] // _DONORS)])
    leaves = frame.leaves
    assert leaves is not None
    sharded = Sharded(
        units=plan.units,
        axes=frame.tree.axes,
        at=frame.tree.at,
        children=frame.tree.children,
        rows=frame.part_rows.sum(axis=0),
        sizes=np.concatenate([one["size"] for one in seen]),
        log_evidence=float(sum(float(one["log_evidence"][0]) for one in seen)) + log_slopes,
        noise_shapes=[one.shape for one in found],
        surprise_variances=_surprises(seen, plan.output_spreads, usual) if learns else None,
        counts=counts,
        in_doubt=np.unique(np.concatenate([one["in_doubt"] for one in learnt]), axis=0),
        donors=np.ascontiguousarray(donors),
        cut_axes=np.flatnonzero((np.isfinite(leaves.low) | np.isfinite(leaves.high)).any(axis=0)),
        n_regions=int(leaves.cell.size),
        n_experts=int(sum(one["output"].size for one in seen)),
    )
    learnt_in_shards(model, sharded, plan.labels)
    write_about(work.shards, model)
    with aside(work.directory / _FINISHED) as temporary:
        temporary.write_text(_digest(work.shards))
    put_in_place(work.shards, output)
    discard(work.directory)
    return cast("SPNGPRegressor", load(output))


def is_in_place(work: Work, output: Path) -> bool:
    """Whether a fit was killed after its model had taken its place, and before its own files had gone."""
    noted = work.directory / _FINISHED
    return noted.is_file() and is_model_directory(output) and noted.read_text() == _digest(output)


def _digest(directory: Path) -> str:
    """Of the file about a model."""
    return hashlib.sha256((directory / MODEL).read_bytes()).hexdigest()


def _noise_shapes(
    work: Work, seen: Sequence[Summary], widens: Array, learns: bool, rng: np.random.Generator
) -> list[ShapeFound]:
    """The shape of each output's noise, by some leaves of some cells."""
    if not learns and not widens.any():
        return [ShapeFound(GAUSSIAN)] * widens.size

    shelf = Directory(work.shards, 0.0, work.known().ground.plan.units.inputs.mean.size, widens.size)

    def opened(cell: int, region: int, place: int) -> Leaf:
        return shelf.cell(cell).network(region).responsibilities()[place].leaf

    leaves = []
    for cell, one in enumerate(seen):
        regions = one["region"].tolist()
        for i in np.flatnonzero(one["alone"]).tolist():
            here = partial(opened, cell, regions[i], i - regions.index(regions[i]))
            leaves.append(Weighed(int(one["output"][i]), float(one["weight"][i]), here))
    return shapes_by(leaves, widens.tolist(), work.known().reach, learns, rng)


def _surprises(seen: Sequence[Summary], spreads: Array, left_out: Sequence[float]) -> Array:
    noise, rows = np.zeros(spreads.size), np.zeros(spreads.size)
    for one in seen:
        shares = one["weight"] * one["own"]
        np.add.at(noise, one["output"], shares * one["noise"])
        np.add.at(rows, one["output"], shares)
    return variances_by(noise, rows, spreads, left_out)
