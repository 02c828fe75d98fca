"""Products of matrices, decompositions, and systems of linear equations."""
