"""A fit in memory that is given the structure of a fit out of core: the judge of what is done cell by cell."""

from dataclasses import replace

import numpy as np

from spngp import SPNGPRegressor
from spngp._support.progress import Progress
from spngp.estimators.elsewhere import describe, learnt_in_shards, plan_for
from spngp.estimators.rows import canonical_order
from spngp.gp.optimisation import Convergence
from spngp.learning.doubt import noise_beyond_reach, without_doubted
from spngp.learning.flow import before_rows, in_units_of_the_user
from spngp.learning.ground import lay_ground
from spngp.learning.learnt import given_rows
from spngp.learning.regional import learn_regions, tied_again
from spngp.structure.cells import CellTree


def fitted_in_memory(model: SPNGPRegressor, X, y, sample: np.ndarray, rows_of_a_cell: float) -> SPNGPRegressor:
    """The model of all rows, with columns, units, tied parameters and the first cuts from the rows ``sample``."""
    some_X, some_Y = describe(model, X.take(sample), np.asarray(y)[sample]), np.asarray(y)[sample]
    some_Y = some_Y.reshape(sample.size, -1)
    order = canonical_order(some_X, some_Y)
    some_X, some_Y = some_X[order], some_Y[order]
    n = len(y)
    plan = plan_for(model, some_X, some_Y, n)
    rng, convergence, quiet = np.random.default_rng(model.random_state), Convergence(), Progress(False)
    W, Z = plan.units.inputs.apply(some_X), plan.units.outputs.apply(some_Y)
    noise = noise_beyond_reach(Z, plan.reach)
    ground = lay_ground(W, without_doubted(Z, noise), plan, rng, convergence, quiet)
    again = tied_again(ground.tied, W, Z, noise, ground.curvatures, ground.plan, np.random.default_rng(0))
    tree = CellTree.of(ground.tied.regions, rows_of_a_cell * sample.size / n, ground.first)
    plan = ground.plan
    X, Y = model.columns_.encode(X), np.asarray(y, dtype=float).reshape(n, -1)
    order = canonical_order(X, Y)
    X, Y = X[order], Y[order]
    W, Z = plan.units.inputs.apply(X), plan.units.outputs.apply(Y)
    regions = replace(plan.strategy(ground.tied.scales), whole_size=0).regions(W, rng, tree.cuts())
    tied = replace(ground.tied, regions=regions)
    working = (np.random.default_rng(0), convergence, quiet)
    beyond = noise_beyond_reach(Z, plan.reach)
    found = learn_regions(tied, W, Z, beyond, ground.curvatures, plan, *working, doubts=True, part=True, again=again)
    unseen = before_rows(tied, found.experts, X, Y, plan.reach, plan)
    learnt = given_rows(unseen, X, Y, found.own_noise, found.own, None)
    learnt_in_shards(model, in_units_of_the_user(learnt, rng, None).with_rows_in(np.argsort(order)), plan.labels)
    return model
