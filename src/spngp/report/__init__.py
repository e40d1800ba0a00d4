"""A report on a fitted model: one HTML file, interactive, that needs neither network nor Python to be read."""

from spngp.report.judged import RowNames
from spngp.report.writing import write_report

__all__ = ["RowNames", "write_report"]
