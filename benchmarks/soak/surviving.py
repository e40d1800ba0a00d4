"""Mutants that tests do not notice, and why that is right or bearable: by file and change."""

EXPLAINED: dict[str, str] = {}
