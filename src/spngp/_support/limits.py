"""Limits that several rooms know, in a module that imports nothing."""

LARGEST_OVERLAP = 1e9  # context rows per own row: more than there are rows, and its square is still a float
