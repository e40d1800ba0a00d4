"""Living data: rows that come and go, exactly and in milliseconds; regions cut and learnt again as they change."""

from spngp.streaming.freezing import frozen
from spngp.streaming.living import Living
from spngp.streaming.predicting import components, routed
from spngp.streaming.shapes import current_shapes
from spngp.streaming.starting import start
from spngp.streaming.upkeep import Learner
from spngp.streaming.whole import forget, update

__all__ = ["Learner", "Living", "components", "current_shapes", "forget", "frozen", "routed", "start", "update"]
