"""Visibility policies: what of the SOP the model sees in each arm."""

from sopilot.runtime.agent.arms._arm import Arm, Request, Shown
from sopilot.runtime.agent.arms._arms_by_name import ARMS, arm_named
from sopilot.runtime.agent.arms._fused import FusedSwitches, fused_arm
from sopilot.runtime.agent.arms._offers import Offer
from sopilot.runtime.agent.arms._view import Done, View, known_values

__all__ = [
    "ARMS",
    "Arm",
    "Done",
    "FusedSwitches",
    "Offer",
    "Request",
    "Shown",
    "View",
    "arm_named",
    "fused_arm",
    "known_values",
]
