"""Figures of models and networks, as display objects in the manner of scikit-learn (matplotlib, the extra ``plot``).

Each class draws from an estimator or from a network or from results at hand, and keeps what it drew, ``ax_`` (or the
two ``axes_``) and ``figure_``. Matplotlib is imported when the first figure is drawn.
"""

from spngp.plotting.along import KernelWeightsDisplay, NoiseDisplay
from spngp.plotting.calibration import CalibrationDisplay
from spngp.plotting.density import DensityDisplay
from spngp.plotting.network import NetworkDisplay
from spngp.plotting.overview import OverviewDisplay
from spngp.plotting.plane import PlaneDisplay
from spngp.plotting.treemap import RegionsDisplay

__all__ = [
    "CalibrationDisplay",
    "DensityDisplay",
    "KernelWeightsDisplay",
    "NetworkDisplay",
    "NoiseDisplay",
    "OverviewDisplay",
    "PlaneDisplay",
    "RegionsDisplay",
]
