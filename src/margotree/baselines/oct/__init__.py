"""OCT-1 and OCT-H, the optimal trees of Bertsimas and Dunn: problem, value, starts and engines."""
