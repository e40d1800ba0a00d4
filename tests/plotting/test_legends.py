"""Legends lie outside the axes, so they cover no data."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest

from spngp.plotting.legends import legend_below


@pytest.mark.parametrize("count", [1, 5, 9])
def test_legend_covers_no_axes_and_stays_on_the_figure(count):
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for i in range(count):
        axes[0].plot([0, 1], [i, i + 1], label=f"line {i}")
        axes[1].plot([0, 1], [i, i + 1], label=f"line {i}")
    legend_below(figure, *axes)
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert [text.get_text() for text in legend.get_texts()] == [f"line {i}" for i in range(count)]
    assert not any(box.overlaps(ax.get_tightbbox()) for ax in axes)
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert box.y0 >= figure.bbox.y0
    plt.close(figure)
