"""Mutants that tests of their room do not notice, and why that is right: by file, line and change."""

# ruff: noqa: E501 - keys are lines of code

_GROWS = "memory that grows as it is asked for"
_INVERSE = "if self.n <= inverted_whole: return _bind(dpotri, self._whole, self)"
_GUIDE = "edges only say where a bracket is cut when Newton steps do not help: a cut next to it is as good"
_BACK = "what is far below the best makes the line search step back, whatever slope it has"
_CHOICE = "a choice of how much is looked at: one more or less changes next to nothing"
_AGAIN = "rows at the same distance are seen or looked for again, with the same result"
_ANEW = "more rows than there were are found anew, with the same result"
_EQUAL = "a number that is equal to the limit, to the last digit, does not occur"
_KEPT = "how much memory a thread keeps is a matter of speed"
_BATCH = "how many rows are worked on at once is a matter of memory and speed"
_TIE = "both ends of the bracket are equally good"
_FEATURES = '_check(features, (self.n, *features.shape[1:2]), "features", features.ndim == 2 and (by_row or by_column))'

EXPLAINED: dict[str, str] = {
    "_linalg/scratch.py, self.memory = np.empty(0): 0 → 1": _GROWS,
    "_linalg/scratch.py, self.lent = np.empty(0): 0 → 1": _GROWS,
    f"_linalg/square.py, if self.n <= inverted_whole:: {_INVERSE} → if not {_INVERSE[3:66]}…": "both ways give the "
    "inverse; one is faster",
    "_linalg/growing.py, if start < stop:: start < stop → start <= stop": "of no rows nothing is copied",
    "_linalg/growing.py, n = A.shape[0]: 0 → 1": "the matrix is square",
    "_linalg/growing.py, _PANEL = 16  # columns that are made triangular at once when rows are taken out: 16 → 17": (
        "how many columns at once is a matter of speed"
    ),
    "_linalg/square.py, self._lower = (pointer(array), integer(array.strides[1] // 8 if n > 1 else max(n, 1))): "
    "max(n, 1) → min(n, 1)": "differs for an empty matrix only, which LAPACK is not asked about",
    f"_linalg/square.py, {_FEATURES}: 2 → 3": "rows of features have two axes, or are refused for that",
    "predictive.py, top[~np.isfinite(top)] = 0.0  # a sum of nothing stays −inf: 0.0 → 1.0": "log 0 + 1 is −∞ as well",
    "predictive.py, _CORE = 9.0  # standard deviations around the mean, outside which a component has a probability of 1e-19: "
    "9.0 → 10.0": _GUIDE,
    "predictive.py, _NUMBERS_AT_ONCE = 2**16  # numbers of each array in a batch: bounds the memory, and fits into a cache: "
    "16 → 17": _BATCH,
    "predictive.py, step = max(1, _NUMBERS_AT_ONCE // numbers): 1 → 2": _BATCH,
    "predictive.py, for _ in range(200):: 200 → 201": "far fewer steps are taken",
    "predictive.py, pick = inside.argmax(axis=-1) + count // 2: 2 → 3": _GUIDE,
    "predictive.py, sign, level = (1.0, q) if q <= 0.5 else (-1.0, 1.0 - q): q <= 0.5 → q < 0.5": "the median is found from "
    "either side",
    'predictive.py, x = np.clip(np.einsum("ik,ik->i", np.exp(log_weights), np.where(used, component, 0.0)), low, high): '
    "0.0 → 1.0": "any number times a weight of zero is nothing",
    "predictive.py, return np.asarray(sign * np.where(error_low <= error_high, low, high)): error_low <= error_high → "
    "error_low < error_high": _TIE,
    "predictive.py, inside = (newton > low[active]) & (newton < high[active]) & (np.abs(newton - at) > resolution): "
    "newton - at → newton + at": "a Newton step shorter than rounding is made before the bracket is cut: one step more",
    "streaming/upkeep.py, if abs(middle) > _FARTHEST_MIDDLE or high - low > 1.35 * _WIDEST:: abs(middle) > _FARTHEST_MIDDLE "
    "→ abs(middle) >= _FARTHEST_MIDDLE": _EQUAL,
    "streaming/upkeep.py, if abs(middle) > _FARTHEST_MIDDLE or high - low > 1.35 * _WIDEST:: high - low > 1.35 * _WIDEST "
    "→ high - low >= 1.35 * _WIDEST": _EQUAL,
    "streaming/local.py, if reach.squared < old.reach.squared:: reach.squared < old.reach.squared → reach.squared <= "
    "old.reach.squared": _AGAIN,
    "streaming/local.py, if reach.squared < farther:: reach.squared < farther → reach.squared <= farther": _AGAIN,
    "streaming/index.py, values = np.zeros(len(self.entries)): np.zeros(len(self.entries)) → np.ones(len(self.entries))": (
        "nobody asks for the evidence of a node that is no longer in use, and those of all others are computed"
    ),
    "streaming/local.py, _LOOSE = (1.0, 2.0, 0.2): 1.0 → 2.0": _CHOICE,
    "streaming/local.py, _LOOSE = (1.0, 2.0, 0.2): 2.0 → 3.0": _CHOICE,
    "streaming/rows.py, _FIRST_ROOM = 64  # rows that an array has room for at first: 64 → 65": _GROWS,
    "streaming/upkeep.py, RECENT = 32  # rows that a region which drifts may be learnt from alone: 32 → 33": _CHOICE,
    "streaming/ageing.py, return since if best > otherwise + _CLEARLY else None: best > otherwise + _CLEARLY → best >= "
    "otherwise + _CLEARLY": _EQUAL,
    "streaming/local.py, _FARTHER = 4.0  # times the squared reach of a region: where rows for a part of it are looked for "
    "next: 4.0 → 5.0": "the nearest rows are taken, wherever else was looked",
    "streaming/shapes.py, n_rows = 0: 0 → 1": _CHOICE,
    "streaming/upkeep.py, if abs(shift) > farthest:: abs(shift) > farthest → abs(shift) >= farthest": _EQUAL,
    "streaming/upkeep.py, if not low <= squares <= high:: low <= squares <= high → low < squares <= high": _EQUAL,
    "network/induced.py, yield log_weight, root.with_children(trees, np.zeros(len(trees))): np.zeros(len(trees)) → "
    "np.ones(len(trees))": "by how much evidences rose matters to sums, and no sum gets here",
    "streaming/freezing.py, reaches = [(r.reach.squared, r.reach.key) if isinstance(r.reach, Reach) else (0.0, 1.0) for r in "
    "regions]: 0.0 → 1.0": "of a margin nothing is read back: it is the overlap of the model",
    "gp/exact.py, extends = own > 0 and not self._jitter and self._repeats is None and gp._n_first == own + y.size: own > 0 → "
    "own >= 0": "the factor of no rows, extended by others, is the factor of these",
    "gp/optimisation.py, pull = np.where(shift < 0.0, below, above) * shift: shift < 0.0 → shift <= 0.0": "nothing pulls at "
    "the centre",
    "gp/leave_one_out.py, if gain > 0.0:: gain > 0.0 → gain >= 0.0": _EQUAL,
    "gp/prior.py, def __init__(self, kernel: Kernel, noise_variance: float | Parameter = 0.1) -> None:: 0.1 → 1.1": "a test holds "
    "this default, but as every test imports the line it may not be among the quickest that are run",
    "gp/left_out.py, m = gp.n - n: gp.n - n → gp.n + n": _ANEW,
    "gp/left_out.py, n = self.first + self.alpha.size: self.first + self.alpha.size → self.first - self.alpha.size": _ANEW,
    "gp/optimisation.py, if 0.5 * gradient @ newton < tolerance or not np.abs(step).max(initial=0.0) > _SHORTEST_STEP:: "
    "0.5 * gradient @ newton < tolerance → 0.5 * gradient @ newton <= tolerance": _EQUAL,
    "gp/optimisation.py, if 0.5 * gradient @ newton < tolerance or not np.abs(step).max(initial=0.0) > _SHORTEST_STEP:: "
    "np.abs(step).max(initial=0.0) > _SHORTEST_STEP → np.abs(step).max(initial=0.0) >= _SHORTEST_STEP": _EQUAL,
    "gp/exact.py, _ROWS_AT_ONCE = 1024  # rows of a batch that is predicted: bounds the memory, large enough for fast matrix "
    "products: 1024 → 1025": _BATCH,
    "gp/optimisation.py, return 10.0 - best / n_rows, np.zeros(: 10.0 → 11.0": _BACK,
    "gp/optimisation.py, return 10.0 - best / n_rows, np.zeros(: np.zeros(point.size) → np.ones(point.size)": _BACK,
    "predictive.py, resolution = np.maximum(2.0 * np.spacing(np.abs(at)), 1e-14 * narrowest[active]): 2.0 → 3.0": "two or "
    "three units in the last place are as good",
    "_linalg/scratch.py, _LARGEST_SCRATCH = 2**23: 2 → 3": _KEPT,
    "_linalg/scratch.py, _LARGEST_SCRATCH = 2**23: 23 → 24": _KEPT,
    "_linalg/square.py, _check(matrix, (self.n, *B.shape[1:2]), name, matrix.ndim == 2 and matrix.flags.f_contiguous): 2 → 3": (
        "a matrix has two axes, or is refused for that"
    ),
    "network/prediction.py, weights, factors = np.zeros((len(self.shapes), parts)), np.ones((len(self.shapes), parts)): "
    "np.ones((len(self.shapes), parts)) → np.zeros((len(self.shapes), parts))": "factors of weight zero count for nothing",
    "_linalg/growing.py, if count > inside:: count > inside → count >= inside": "both ways give the same diagonal",
    "_linalg/growing.py, used = self.n - slab.start: self.n - slab.start → self.n + slab.start": "a slab that seems to have no "
    "room is filled by the loop below, with the same result",
    "streaming/predicting.py, sees = log_weights[i] >= _LEAST_LOG_WEIGHT and region.sees_beyond: log_weights[i] >= "
    "_LEAST_LOG_WEIGHT → log_weights[i] > _LEAST_LOG_WEIGHT": _EQUAL,
    "streaming/rows.py, room = max(_FIRST_ROOM, 2 * values.shape[0]): 2 → 3": _GROWS,
    "network/conditioning.py, seeing = {i for i in leaves if np.exp(log_weights[i]) >= least_weight}: np.exp(log_weights[i]) >= "
    "least_weight → np.exp(log_weights[i]) > least_weight": _EQUAL,
    "network/prediction.py, means=np.zeros(shape),: np.zeros(shape) → np.ones(shape)": "components of weight zero may be anywhere",
}
