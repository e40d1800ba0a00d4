"""Fits and predictions beyond memory: rows stay on the disk, and one cell of the space at a time is worked on."""

from spngp.outofcore.fitting import Job, fit

__all__ = ["Job", "fit"]
