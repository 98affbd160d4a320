"""The agent: what drives a session.

Owns the driver that every door shares, the loop with its budgets, the arms (what
a model sees of an SOP), the users and the reference executor. May import every
room below it; models that need a library or a network are adapters.
"""

from sopilot.runtime.agent._budgets import DEEP_BUDGETS, UNLIMITED, Budgets
from sopilot.runtime.agent._closing_audit import audit_session
from sopilot.runtime.agent._driver import Driver
from sopilot.runtime.agent._loop import run_session
from sopilot.runtime.agent._opening import open_run, resume_run, run_programs
from sopilot.runtime.agent._providers import (
    CONTEXT,
    EMPTY,
    Attempts,
    InfrastructureFailure,
    ProviderError,
    Retries,
    complete_with_retries,
)
from sopilot.runtime.agent._result import Ending, Refusal, RequestRecord, SessionResult
from sopilot.runtime.agent.arms import (
    ARMS,
    Arm,
    Done,
    FusedSwitches,
    Offer,
    Request,
    View,
    arm_named,
    fused_arm,
)
from sopilot.runtime.agent.briefing import Briefing
from sopilot.runtime.agent.operators import Operator, RecallsOutcomes, RoleApprovers, Vote
from sopilot.runtime.agent.progress import Progress, Watch
from sopilot.runtime.agent.reference import (
    SWITCHES,
    CannotJudge,
    Misbehaviour,
    PredicateJudge,
    Reference,
    Seen,
    TextJudge,
    VerdictJudge,
)
from sopilot.runtime.agent.scripted_tools import ScriptedTools, action_schema
from sopilot.runtime.agent.toolbox import END_SESSION
from sopilot.runtime.agent.users import ModelUser, ScriptedUser

__all__ = [
    "ARMS",
    "CONTEXT",
    "DEEP_BUDGETS",
    "EMPTY",
    "END_SESSION",
    "SWITCHES",
    "UNLIMITED",
    "Arm",
    "Attempts",
    "Briefing",
    "Budgets",
    "CannotJudge",
    "Done",
    "Driver",
    "Ending",
    "FusedSwitches",
    "InfrastructureFailure",
    "Misbehaviour",
    "ModelUser",
    "Offer",
    "Operator",
    "PredicateJudge",
    "Progress",
    "ProviderError",
    "RecallsOutcomes",
    "Reference",
    "Refusal",
    "Request",
    "RequestRecord",
    "Retries",
    "RoleApprovers",
    "ScriptedTools",
    "ScriptedUser",
    "Seen",
    "SessionResult",
    "TextJudge",
    "VerdictJudge",
    "View",
    "Vote",
    "Watch",
    "action_schema",
    "arm_named",
    "audit_session",
    "complete_with_retries",
    "fused_arm",
    "open_run",
    "resume_run",
    "run_programs",
    "run_session",
]
