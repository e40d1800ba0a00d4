"""A fit out of core: a sample, cells, regions, the rows around them, weights; then a directory of shards.

The steps, each for all pieces or cells before the next begins:

1. a sample of the rows settles columns, units, tied parameters and cells (the *ground*);
2. every row is routed to its cell;
3. every cell is cut into regions, whose experts are learnt and conditioned on their own rows;
4. rows that leaves of other cells may see are exchanged;
5. leaves see the rows around them, and shards are written;
6. evidences, the shape of the noise, and the file about the model, last.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from spngp._support.checks import as_generator
from spngp._support.memory import default_limit
from spngp._support.progress import Progress
from spngp._support.threads import one_blas_thread
from spngp._support.types import Array
from spngp.estimators import SPNGPRegressor
from spngp.estimators.elsewhere import check_supported, describe, plan_for
from spngp.estimators.rows import canonical_order
from spngp.gp.optimisation import Convergence
from spngp.io import load
from spngp.learning.doubt import noise_beyond_reach, without_doubted
from spngp.learning.ground import Ground, lay_ground
from spngp.learning.proportion import most_errors
from spngp.learning.regional import tied_again
from spngp.learning.tied import Tied
from spngp.outofcore.cells import learn_cell, see_around
from spngp.outofcore.facts import Facts
from spngp.outofcore.finishing import finished, is_in_place
from spngp.outofcore.halos import exchange, measure_reach
from spngp.outofcore.pieces import Piece, pieces_of
from spngp.outofcore.reading import inputs_of, learnt_outputs, outputs_of, route, share_of, take_sample
from spngp.outofcore.spill import JOB, aside, discard
from spngp.outofcore.work import Engine, Frame, LeafTable, Step, Summary, Work, run
from spngp.structure import Region
from spngp.structure.cells import CellTree

MOST_SAMPLED = 1_000_000  # rows
_REGIONS_OF_A_CELL = 32  # times the most rows of a region: about the most rows of a cell, but
_SEEN_OF_A_CELL = 8.0  # times the rows that a leaf sees, and
_MOST_CELLS = 2000  # about, at most: tables of pairs of cells grow with their square


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is to be fitted, and where.

    Attributes
    ----------
    dataset : pyarrow.dataset.Dataset
    inputs, targets : sequence of str
        Columns.
    output : Path
        The directory that becomes the model.
    most_sampled : int
        Rows of the sample, at most.
    rows_of_a_cell : int, optional
        About how many rows a cell has at most; by default 32 times as many as a region.
    resume : bool
        Go on with what an interrupted fit of the same job has left.
    as_columns : bool
        Whether predictions for a single target are columns, (n, 1).
    named : bool
        Whether the model knows its inputs by name.
    table : TableSchema, optional
        What the command line knows of the table.
    weight, variance : str, optional
        Columns with ``sample_weight`` and ``y_variance`` of a fit in memory.
    """

    dataset: Any
    inputs: Sequence[str]
    targets: Sequence[str]
    output: Path
    most_sampled: int = MOST_SAMPLED
    rows_of_a_cell: int | None = None
    resume: bool = False
    as_columns: bool = False
    named: bool = True
    table: Any = None
    weight: str | None = None
    variance: str | None = None

    @property
    def directory(self) -> Path:
        """Where spill files are; it is there only while a fit is under way or was killed."""
        return self.output.with_name(f".{self.output.name}.fit")


def fit(model: SPNGPRegressor, job: Job, engine: Engine) -> SPNGPRegressor:
    """Fit a model out of core; it lies in shards in ``job.output``, which appears when all is done.

    After an error spill files are removed. A fit that was killed, or has lost its workers, leaves them for a job that
    is to ``resume`` it.
    """
    check_supported(model, job.variance is not None)
    work = Work(job.directory, job.directory / "model")
    model, facts = clone(model), Facts(job.weight, job.variance)
    if job.table is not None:
        model.table_ = job.table
    pieces = pieces_of(job.dataset, [*job.inputs, *job.targets, *facts.columns])
    goes_on = _goes_on(model, job, work, pieces)
    if goes_on and is_in_place(work, job.output):
        discard(work.directory)
        return cast("SPNGPRegressor", load(job.output))
    try:
        seed = _seed(model, job, work, pieces, goes_on)
        with Progress(bool(model.verbose)) as progress, one_blas_thread():
            return _fitted(model, job, facts, engine, work, pieces, seed, progress)
    except Exception as error:
        if _is_final(error):
            discard(work.directory)
        raise


def _is_final(error: Exception) -> bool:
    """Whether to try again would end in the same error: not if workers or connections were lost."""
    if isinstance(error, OSError):  # NumPy's of a full disk has no number, like Dask's of a lost connection
        return type(error) is OSError or (
            error.errno is not None and not isinstance(error, ConnectionError | TimeoutError)
        )
    return isinstance(error, ValueError | TypeError | ArithmeticError)


def _about(model: SPNGPRegressor, job: Job, pieces: Sequence[Piece]) -> dict[str, Any]:
    """What tells a fit from another one."""
    return {
        "parameters": {name: repr(value) for name, value in sorted(model.get_params().items()) if name != "n_jobs"},
        "pieces": [[piece.name, piece.n_rows] for piece in pieces],
        "columns": [list(job.inputs), list(job.targets), job.weight, job.variance],
        "sizes": [job.most_sampled, job.rows_of_a_cell],
    }


def _goes_on(model: SPNGPRegressor, job: Job, work: Work, pieces: Sequence[Piece]) -> bool:
    """Whether the directory is as the same job has left it; an error if it is another's that is to be resumed."""
    noted = work.directory / JOB
    if not (job.resume and noted.is_file()):
        return False
    if json.loads(noted.read_text())["about"] != _about(model, job, pieces):
        raise ValueError(f"{work.directory} is of another fit: other data or other options; fit without resuming it")
    return True


def _seed(model: SPNGPRegressor, job: Job, work: Work, pieces: Sequence[Piece], goes_on: bool) -> int:
    """The seed of a fit, that goes on or begins with a directory of its own."""
    noted = work.directory / JOB
    if goes_on:
        return int(json.loads(noted.read_text())["seed"])
    discard(work.directory)
    work.shards.mkdir(parents=True)
    seed = int(as_generator(model.random_state).integers(2**62))
    with aside(noted) as temporary:
        temporary.write_text(json.dumps({"about": _about(model, job, pieces), "seed": seed}))
    return seed


def _fitted(
    model: SPNGPRegressor,
    job: Job,
    facts: Facts,
    engine: Engine,
    work: Work,
    pieces: Sequence[Piece],
    seed: int,
    progress: Progress,
) -> SPNGPRegressor:
    def step(stage: str, name: str, function: Step, items: Sequence[Any], work: Work) -> list[Summary]:
        progress.stage(stage, len(items))
        return run(work, engine, name, function, items, progress.advance)

    n_given = sum(piece.n_rows for piece in pieces)
    columns, limit = [*job.inputs, *job.targets], model.memory_limit or default_limit()
    share = share_of(n_given, len(columns), limit, job.most_sampled)
    counted = step("sample", "sample", partial(take_sample, share, seed, columns, facts), pieces, work)
    n_rows = int(sum(int(one["rows"][0]) for one in counted))
    if not n_rows:
        raise ValueError(f"weights in column {job.weight!r} must leave at least one row, got zero for all {n_given:,}")
    facts = replace(facts, has_fractions=any(bool(one["has_fractions"][0]) for one in counted))
    frame, rng = _laid(model, job, facts, work, pieces, n_rows, seed, progress)
    work = replace(work, frame=frame)
    routed = step("routing", "route", route, pieces, work)
    work = _with_parts(work, pieces, routed)
    cells = list(range(frame.tree.n_cells))
    learnt = step("experts", "learn", learn_cell, cells, work)
    work = _with_leaves(work, learnt)
    if work.known().overlap:
        reaches = step("exchange", "reach", measure_reach, cells, work)
        leaves = replace(_leaves(work), squared_reach=np.concatenate([one["squared_reach"] for one in reaches]))
        work = work.with_frame(leaves=leaves)
        halos = step("exchange", "exchange", exchange, cells, work)
        work = work.with_frame(halos=np.array([one["counts"] for one in halos]))
    seen = step("leaves", "see", see_around, cells, work)
    known = np.sum([one["known"] for one in routed], axis=0)
    slopes = float(sum(float(one["log_slopes"][0]) for one in routed))
    return finished(model, job.output, work, learnt, seen, known, slopes, rng)


def _laid(
    model: SPNGPRegressor,
    job: Job,
    facts: Facts,
    work: Work,
    pieces: Sequence[Piece],
    n_rows: int,
    seed: int,
    progress: Progress,
) -> tuple[Frame, np.random.Generator]:
    """What the sample tells: columns, units, tied parameters, cells; and the generator as it is then."""
    X, Y, noted = _sample(model, job, facts, work, pieces)
    plan = plan_for(model, X, Y, n_rows, facts.known(noted, Y.shape[1]))
    doubts = plan.doubts_outliers and plan.hyperparameters != "fixed"
    reach = plan.reach if doubts else np.full(Y.shape[1], np.inf)
    W, Z = plan.units.inputs.apply(X), plan.units.outputs.apply(Y)
    np.save(work.directory / "sample.npy", W)
    convergence, rng = Convergence(), as_generator(model.random_state if isinstance(model.random_state, int) else seed)
    sound = without_doubted(Z, noise_beyond_reach(Z, reach))
    ground = lay_ground(W, sound, replace(plan, reach=reach), rng, convergence, progress)
    convergence.warn()
    if ground.tied.regions.is_leaf:
        raise ValueError(f"{n_rows:,} rows are too few to be fitted out of core: fit them in memory")
    again: tuple[Tied, ...] = ()
    if doubts:
        draws = np.random.default_rng(seed)  # those of the other generator are the same as in memory
        noise = noise_beyond_reach(Z, reach)
        again = tied_again(ground.tied, W, Z, noise, ground.curvatures, ground.plan, draws)
    share = W.shape[0] / n_rows
    sees = (1.0 + (3.0 if plan.overlap is None else float(plan.overlap))) * plan.block_size
    wanted = job.rows_of_a_cell or _REGIONS_OF_A_CELL * plan.block_size
    rows = max(wanted, _SEEN_OF_A_CELL * sees, n_rows / _MOST_CELLS)
    tree = CellTree.of(ground.tied.regions, rows * share, ground.first)
    tied = replace(ground.tied, regions=Region(ground.tied.regions.box, np.empty(0, dtype=np.intp)), sampled=[])
    # what the rows of a sample say to each other is not what as many denser ones do
    own_share = ground.plan.context_share if share == 1.0 else 1.0
    ground = Ground(replace(ground.plan, variances=None, context_share=own_share), tied, ground.curvatures)
    names = (list(job.inputs), list(job.targets))
    return Frame(model.columns_, *names, ground, again, tree, n_rows, seed, model.targets_, facts), rng


def _sample(
    model: SPNGPRegressor, job: Job, facts: Facts, work: Work, pieces: Sequence[Piece]
) -> tuple[Array, Array, Array]:
    """Inputs and outputs of the sample and what is known of their noise, in the canonical order.

    The model knows its columns and scales from it.
    """
    tables = []
    for piece in pieces:
        with pa.memory_map(str(work.sample(piece.number))) as source:
            tables.append(pa.ipc.open_file(source).read_all())
    table, each = pa.concat_tables(tables, promote_options="permissive"), list(zip(tables, pieces, strict=True))
    outputs = [outputs_of(one, list(job.targets), piece.name) for one, piece in each]
    y = np.concatenate(outputs)
    X = describe(model, table.select(list(job.inputs)), y[:, 0] if y.shape[1] == 1 and not job.as_columns else y)
    if not job.named:
        del model.feature_names_in_
    weights = [facts.weights_of(one, piece.name) for one, piece in each]
    parts = list(zip(each, outputs, weights, strict=True))
    for (one, piece), _, _ in parts:
        inputs_of(one.select(list(job.inputs)), model.columns_, piece.name)
    Y = np.concatenate(
        [own.of(learnt_outputs(given, model.targets_, job.targets, piece.name)) for (_, piece), given, own in parts]
    )
    noted = np.concatenate([facts.noted(one, given, own, piece.name) for (one, piece), given, own in parts])
    ends = np.cumsum([one.num_rows for one in tables])[:-1]
    X = np.concatenate([own.of(rows) for own, rows in zip(weights, np.split(X, ends), strict=True)])
    order = canonical_order(X, Y)
    return X[order], Y[order], noted[order]


def _with_parts(work: Work, pieces: Sequence[Piece], routed: Sequence[Summary]) -> Work:
    """The work with where rows are, and how far outputs may be off."""
    plan = work.known().ground.plan
    parts = [(piece.number, i) for piece, one in zip(pieces, routed, strict=True) for i in range(len(one["counts"]))]
    beyond = np.sum([one["beyond"] for one in routed], axis=0)
    reach = np.where(beyond <= most_errors(work.known().n_rows), plan.reach, np.inf)
    rows = np.concatenate([one["counts"] for one in routed])
    return work.with_frame(parts=np.array(parts), part_rows=rows, reach=reach)


def _with_leaves(work: Work, learnt: Sequence[Summary]) -> Work:
    """The work with all leaf regions, the overlap that they have, and the noise that they share."""
    plan, n_rows = work.known().ground.plan, work.known().n_rows
    cell = np.concatenate([np.full(one["rows"].size, c) for c, one in enumerate(learnt)])
    low, high, rows = (np.concatenate([one[name] for one in learnt]) for name in ("low", "high", "rows"))
    n_regions = sum(int(one["cut_for_size"]) for one in learnt)
    overlap = float(np.asarray(plan.overlap_of(n_rows, n_rows / n_regions)))
    tied = set.intersection(*({(int(k), float(noise)) for k, noise in one["tied"]} for one in learnt))
    leaves = LeafTable(cell, low, high, rows, np.full(cell.size, -1.0))
    return work.with_frame(leaves=leaves, overlap=overlap, tied_noise=tuple(sorted(tied)))


def _leaves(work: Work) -> LeafTable:
    leaves = work.known().leaves
    assert leaves is not None
    return leaves
