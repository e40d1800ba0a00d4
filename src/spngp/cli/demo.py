"""``spngp demo``: the main job on embedded data."""

from __future__ import annotations


def demo() -> None:
    """Fit, predict and evaluate on the embedded motorcycle data."""
    from spngp.demo import main

    main()
