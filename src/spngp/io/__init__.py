"""Models in files: ``model.save("model.spngp")`` and ``spngp.load``.

One file in the safetensors format: arrays that are mapped into memory, not read, and a JSON description of how they
make up a model. No pickle, so a file can do nothing but be a model or be refused.
"""

from spngp.io.models import load, save
from spngp.io.objects import SCHEMA
from spngp.io.tensors import ModelFileError

__all__ = ["SCHEMA", "ModelFileError", "load", "save"]
