"""MM-SVM-OCT, the max-margin tree of Blanco, Japon and Puerto: problem, value, polish, start and engine."""
