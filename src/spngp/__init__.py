"""Deep mixtures of Gaussian-process experts with exact inference."""

from spngp._version import __version__

__all__ = ["__version__"]
