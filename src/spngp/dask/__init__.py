"""Dask as the engine of a fit: for data of many machines, or for several processes of one.

Needs the extra ``dask``. The steps of a fit are those of :mod:`spngp.outofcore`; Dask's workers do them. They share a
directory: rows, halos and shards go by way of it, so only paths and small numbers travel, and what a lost worker had
done is not lost.
"""

from spngp.dask.regressor import DaskSPNGPRegressor

__all__ = ["DaskSPNGPRegressor"]
