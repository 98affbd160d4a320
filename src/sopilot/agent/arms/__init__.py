"""Visibility policies: what of the SOP the model sees in each arm."""

from sopilot.agent.arms.arm import Arm
from sopilot.agent.arms.arms_by_name import ARMS, arm_named
from sopilot.agent.arms.fused import FusedSwitches, fused_arm
from sopilot.agent.arms.offers import Offer
from sopilot.agent.arms.view import Done, View, known_values

__all__ = [
    "ARMS",
    "Arm",
    "Done",
    "FusedSwitches",
    "Offer",
    "View",
    "arm_named",
    "fused_arm",
    "known_values",
]
