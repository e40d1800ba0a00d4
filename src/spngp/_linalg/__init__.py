"""Dense linear algebra: LAPACK without the GIL, the square matrix, scratch memory, the compiled loops."""
