"""Stands here so that the rooms below find `looped`, which all doors are compared with."""
