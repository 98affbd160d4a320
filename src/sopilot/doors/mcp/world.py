"""The world of a served session."""

from sopilot.desks.tasks.world import UNLIMITED, NoTools, ReplayedTools, World, WorldDiverged

__all__ = ["UNLIMITED", "NoTools", "ReplayedTools", "World", "WorldDiverged"]
