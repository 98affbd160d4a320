"""The world of a served session."""

from sopilot.desks.tasks.world import NoTools, ReplayedTools, World, WorldDiverged

__all__ = ["NoTools", "ReplayedTools", "World", "WorldDiverged"]
