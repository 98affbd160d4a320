"""The text a model reads: frames, program text, the step tool, answers of the guard."""
