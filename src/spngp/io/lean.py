"""What a file can do without: factors, and copies of the rows that a model holds anyway.

A GP's rows are rows of the model, so a file has their positions. Its factor, and its C⁻¹y where it makes no
predictions, follow from rows and parameters: they are computed again when they are first used, to the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spngp._support.consistency import must, must_have_shape
from spngp._support.types import Array
from spngp.gp.exact import ExactGP
from spngp.io.deferred import StoredGP
from spngp.learning import Learnt
from spngp.network import Leaf, Node
from spngp.network.placement import distinct_nodes
from spngp.network.units import Units
from spngp.streaming import Living, frozen


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows and outputs of a model in the units of the user, and the units of its GPs.

    Attributes
    ----------
    X, Y : ndarray
    units : Units
    """

    X: Array
    Y: Array
    units: Units

    @staticmethod
    def checked(X: Any, Y: Any, units: Any) -> Rows:
        """From what a file holds; what does not fit is an error."""
        must(isinstance(X, np.ndarray) and isinstance(Y, np.ndarray), "rows must be arrays", type(X).__name__)
        must(X.ndim == Y.ndim == 2 and X.shape[0] == Y.shape[0], "rows must be matrices", (X.shape, Y.shape))
        must(X.dtype == Y.dtype == np.float64, "rows must be numbers", X.dtype)
        must(not (np.isinf(X).any() or np.isinf(Y).any()), "rows must be finite, or missing", "infinite ones")
        must(isinstance(units, Units), "rows must have units", type(units).__name__)
        must_have_shape(units.inputs.mean, X.shape[1:], "means of the inputs")
        must_have_shape(units.outputs.mean, Y.shape[1:], "means of the outputs")
        return Rows(X, Y, units)

    def shape_taken(self, n: int, column: Any) -> tuple[int, ...]:
        """Shape of n rows, or of one output of them."""
        if column is None:
            return n, self.X.shape[1]
        must(type(column) is int and 0 <= column < self.Y.shape[1], "rows must have the output", column)
        return (n,)

    def inputs(self, positions: NDArray[Any]) -> Array:
        """Some rows in the units of GPs."""
        return np.ascontiguousarray(self.units.inputs.apply(self.X[positions]))

    def outputs(self, positions: NDArray[Any], k: int) -> Array:
        """One output of some rows in the units of GPs."""
        return self.units.outputs.column(k).apply(self.Y[positions, k : k + 1])[:, 0].copy()


class Taken(NamedTuple):
    """Instead of an array: rows at these positions, or their outputs in one column."""

    positions: NDArray[Any]
    column: int | None


class Again(NamedTuple):
    """Instead of an array: it is computed again."""


class Lean:
    """Takes GPs apart without what can be computed again.

    Parameters
    ----------
    rows : Rows, optional
        Those that GPs may have been given.
    networks : sequence of Node, optional
        Those that predict: their leaves keep their C⁻¹y. None if all do.
    """

    def __init__(self, rows: Rows | None = None, networks: Sequence[Node] | None = None) -> None:
        self._rows = rows
        self._predicting: set[int] | None = None
        if networks is not None:
            nodes = (node for network in networks for node in distinct_nodes(network))
            self._predicting = {id(node.gp) for node in nodes if isinstance(node, Leaf)}
        if rows is not None:
            everything = np.arange(rows.X.shape[0])
            self._inputs = rows.inputs(everything)
            columns = range(rows.Y.shape[1])
            self._sorted = [_Sorted.of(self._inputs, rows.outputs(everything, k)) for k in columns]
            self._positions: dict[bytes, NDArray[Any]] = {}

    @staticmethod
    def of(model: Any) -> Lean:
        """For the GPs of an estimator."""
        learnt = vars(model).get("_learnt")
        learnt = frozen(learnt) if isinstance(learnt, Living) else learnt
        if not isinstance(learnt, Learnt):
            return Lean()
        return Lean(Rows(learnt.X, learnt.Y, learnt.units), [learnt.network])

    def take_apart(self, gp: ExactGP) -> dict[str, Any]:
        """The attributes of a GP as a file holds them."""
        later = isinstance(gp, StoredGP) and gp.needs_factor
        attributes = {name: getattr(gp, name) for name in attribute_names(gp) if not (later and name == "_L")}
        if later or (attributes["_L"] is not None and not attributes["_extended"]):
            attributes["_L"] = Again()
        if self._predicting is not None and id(gp) not in self._predicting and gp._y.size:
            attributes["_alpha"] = Again()
        found = self._found(gp)
        if found is not None:
            positions, column = found
            attributes |= {"_X": Taken(positions, None), "_y": Taken(positions, column), "rows": self._rows}
        return attributes

    def _found(self, gp: ExactGP) -> tuple[NDArray[Any], int] | None:
        """Where a GP's rows stand among the model's, and which output it models; none if they were merged."""
        if self._rows is None or not gp._y.size:
            return None
        for k, known in enumerate(self._sorted):
            positions = known.find(gp._X, gp._y)
            if positions is not None:
                return self._positions.setdefault(positions.tobytes(), positions), k  # equal ones are stored once
        return None


def attribute_names(gp: ExactGP) -> list[str]:
    """The attributes of a GP, of a file or not."""
    return list(gp._attributes if isinstance(gp, StoredGP) else gp.__dict__)


@dataclass(frozen=True)
class _Sorted:
    """Rows with their outputs as bytes, in ascending order, and where they stand."""

    keys: NDArray[Any]
    order: NDArray[Any]

    @staticmethod
    def of(X: Array, y: Array) -> _Sorted:
        keys = _keys(X, y)
        order = np.argsort(keys, kind="stable")
        return _Sorted(keys[order], order.astype(np.int32 if y.size < 2**31 else np.int64))

    def find(self, X: Array, y: Array) -> NDArray[Any] | None:
        """Positions of the same rows with the same outputs, to the last bit; none if one of them is not there."""
        keys = _keys(X, y)
        places = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        return self.order[places] if bool((self.keys[places] == keys).all()) else None


def _keys(X: Array, y: Array) -> NDArray[Any]:
    together = np.ascontiguousarray(np.column_stack([X, y]))
    return together.view(np.dtype((np.void, together.shape[1] * 8)))[:, 0]
