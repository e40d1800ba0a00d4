"""The version that the build read from version control, at hand without importing anything large."""

try:
    from spngp._support._built import __version__
except ModuleNotFoundError:  # the sources run as they lie, without having been installed
    __version__ = "0.1.0.dev0"  # as fallback_version in pyproject.toml

__all__ = ["__version__"]
