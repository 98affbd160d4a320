"""Judge traces and transcripts against the programs they ran.

Pure. Reads evidence by a method of its own, so that guard and audit can contradict each other.
"""
