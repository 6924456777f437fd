"""The paper's formulations as sparse matrices, and one adapter a MIP solver."""
