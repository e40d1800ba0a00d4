"""Formulas of the kernels in C; where they cannot be compiled, NumPy takes their place. All else: pyproject.toml."""

import sys

from setuptools import Extension, setup

_GCC = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd"]

setup(
    ext_modules=[
        Extension(
            "spngp._native",
            ["src/spngp/_native.c"],
            extra_compile_args=["/O2"] if sys.platform == "win32" else _GCC,
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},  # one wheel for this Python and all later ones
)
