"""Visibility policies: what of the SOP the model sees in each arm."""

from sopilot.runtime.agent.arms.arm import Arm, Request
from sopilot.runtime.agent.arms.arms_by_name import ARMS, arm_named
from sopilot.runtime.agent.arms.fused import FusedSwitches, fused_arm
from sopilot.runtime.agent.arms.offers import Offer
from sopilot.runtime.agent.arms.view import Done, View, known_values

__all__ = [
    "ARMS",
    "Arm",
    "Done",
    "FusedSwitches",
    "Offer",
    "Request",
    "View",
    "arm_named",
    "fused_arm",
    "known_values",
]
