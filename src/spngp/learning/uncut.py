"""A small set as a whole: experts averaged over settings, steps, and noise that changes smoothly."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spngp._support.types import Array
from spngp.learning.averaging import Averaged, averaged_experts, believes_in_steps, put_in
from spngp.learning.cutting import explained
from spngp.learning.experts import Experts
from spngp.learning.held_out import Score
from spngp.learning.plan import Plan
from spngp.learning.regional import prior_of
from spngp.learning.smooth_experts import Smooth, joined, smooth_experts
from spngp.learning.stacking import PLAIN, SMOOTH, only, with_further
from spngp.learning.tied import Tied

_FARTHER = 1.04  # squared errors with smooth noise, relative to those without it, at most


class Uncut(NamedTuple):
    """Alternatives of all rows together, by output; none where the tied experts are all there is.

    Attributes
    ----------
    averaged : dict
        Experts averaged over settings of their hyper-parameters.
    smooth : dict
        Experts whose noise changes smoothly.
    """

    averaged: dict[int, Averaged]
    smooth: dict[int, Smooth]

    @staticmethod
    def of(tied: Tied, X: Array, Y: Array, plan: Plan, rng: np.random.Generator) -> Uncut:
        """Learnt from rows without outputs in doubt."""
        return Uncut(averaged_experts(tied, X, Y, plan, rng), smooth_experts(tied, X, Y, plan, rng))

    def put_in(self, experts: Experts, tied: Tied, X: Array, Y: Array, plan: Plan) -> Experts:
        """``experts`` with these in place of those of the root region, where it may be whole."""
        if not tied.regions.is_leaf:
            return experts
        return joined(self.smooth, put_in(self.averaged, experts, tied, X, Y, plan), tied)

    def if_better(
        self,
        experts: Experts,
        tied: Tied,
        X: Array,
        Y: Array,
        plan: Plan,
        score: Callable[[Tied, Experts, Plan], Score],
    ) -> tuple[Uncut, dict[str, Score]]:
        """Without smooth noise, unless outputs that are left out are better predicted and no farther off; the scores.

        Of several inputs evidence may take for noise what is a function that the kernel does not fit. Along a single
        one it decides, and there are no scores.
        """
        if not self.smooth or X.shape[1] == 1:
            return self, {}
        without, joined_experts = self._replace(smooth={}), self.put_in(experts, tied, X, Y, plan)
        plain, smooth = (score(tied, only(name, joined_experts, tied), plan) for name in (PLAIN, SMOOTH))
        scores = {PLAIN: plain}
        if smooth.squared_error < _FARTHER * plain.squared_error:
            scores = with_further(scores, SMOOTH, smooth, tied.n_parameters)
        return self if SMOOTH in scores else without, scores

    def averaged_again(self, tied: Tied, X: Array, Y: Array, plan: Plan, rng: np.random.Generator) -> Uncut:
        """With settings averaged anew, for other outputs in doubt."""
        return self._replace(averaged=averaged_experts(tied, X, Y, plan, rng))

    @property
    def knows_more(self) -> bool:
        """Whether it can explain outputs that one smooth function with one noise cannot."""
        return bool(self.smooth) or believes_in_steps(self.averaged)


def without_doubt_explained(experts: Experts, tied: Tied, X: Array, Z: Array, own_noise: Array, plan: Plan) -> Array:
    """``own_noise`` without the outputs that the experts explain: next to a step, or where there is more noise.

    To all who know of one function and one noise, such rows look like errors.
    """
    sound = np.where(np.isnan(own_noise), Z, np.nan)
    prior = prior_of(tied.regions, experts, plan)
    return np.where(explained(prior, X, Z, sound, own_noise, plan.variances), np.nan, own_noise)
