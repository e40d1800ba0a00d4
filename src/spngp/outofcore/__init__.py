"""Fits and predictions beyond memory: rows stay on the disk, and one cell of the space at a time is worked on."""

from spngp.outofcore.datasets import fit_dataset
from spngp.outofcore.fitting import Job, fit
from spngp.outofcore.predicting import predictions

__all__ = ["Job", "fit", "fit_dataset", "predictions"]
