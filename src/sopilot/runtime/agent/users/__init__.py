"""Who is served: scripted users and users played by a model. People are the command line's."""

from sopilot.runtime.agent.users._modelled import ModelUser
from sopilot.runtime.agent.users._scripted import EVERYTHING_TOLD, ScriptedUser

__all__ = ["EVERYTHING_TOLD", "ModelUser", "ScriptedUser"]
