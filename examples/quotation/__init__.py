"""A quotation workflow: a program written by hand, with its tools and its tasks.

``program.yaml`` is the procedure, ``tools.py`` makes the tools of one task,
``tasks.yaml`` holds ten tasks. See ``README.md``.
"""
