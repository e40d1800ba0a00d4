"""Mutants that tests of their room do not notice, and why that is right: by file, line and change."""

_GROWS = "memory that grows as it is asked for"
_INVERSE = "if self.n <= inverted_whole: return _bind(dpotri, self._whole, self)"

EXPLAINED: dict[str, str] = {
    "_linalg/scratch.py, self.memory = np.empty(0): 0 → 1": _GROWS,
    "_linalg/scratch.py, self.lent = np.empty(0): 0 → 1": _GROWS,
    f"_linalg/square.py, if self.n <= inverted_whole:: {_INVERSE} → if not {_INVERSE[3:66]}…": "both ways give the "
    "inverse; one is faster",
}
