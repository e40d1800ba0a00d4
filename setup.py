"""Inner loops of kernels in C; where they cannot be compiled, NumPy takes their place. All else: pyproject.toml."""

import sys
import sysconfig

from setuptools import Extension, setup

# -fno-fast-math before the two that it sets back. Debug information would hold the path of the folder: wheels could not
# be built again byte for byte.
_GCC = ["-O3", "-g0", "-fno-fast-math", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd"]
# One wheel for this Python and all later ones, but for those without a GIL, which have no stable interface yet.
_LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED")

setup(
    ext_modules=[
        Extension(
            "spngp._linalg._native",
            ["src/spngp/_linalg/native.c"],
            extra_compile_args=["/O2"] if sys.platform == "win32" else _GCC,
            py_limited_api=_LIMITED,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if _LIMITED else {},
)
