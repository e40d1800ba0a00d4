"""Faces that other libraries expect, one module for each; what they import is an extra of its name."""
