"""Visibility policies: what of the SOP the model sees in each arm."""

from sopilot.agent.arms.arm import ARMS, Arm, arm_named
from sopilot.agent.arms.view import Done, View, known_values

__all__ = ["ARMS", "Arm", "Done", "View", "arm_named", "known_values"]
