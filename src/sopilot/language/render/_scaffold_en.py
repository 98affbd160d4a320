"""The English words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ENGLISH: Final[Mapping[str, str]] = {
    # --- functions ---
    "process": "process",
    "group": "group",
    "gate": "gate",
    "rule": "rule",
    "purpose": "For: {says}",
    "judges": "Judges: {says}",
    "establishes": "Establishes: {says}",
    # --- steps ---
    "check_must": "call {call}; must be {wanted}",
    "check_want": "call {call}; wanted {wanted}",
    "bound_as": " (as {slot})",
    "for_each": " for each {element} in {where}",
    "undecided": "undecided",
    "true": "true",
    "false": "false",
    "met": "; met → {target}",
    "unmet": "; unmet → {target}",
    "met_or_on": "; met → {target}, unmet: go on",
    "either": "; go on either way",
    "goto": "; → {target}",
    "branch": "if {when} → {then}, else → {otherwise}",
    "choose": "choose: {says}",
    "option": "- {name} → {target}",
    "option_says": ": {says}",
    "act": "tool {call}",
    "goal": "goal tool {call}",
    "instead": "or instead: {calls}",
    "then": ", then ",
    "ask": "ask the user: {names}",
    "do": "do: {says}",
    "do_with": " (tools: {names})",
    "emit": "hand over artifact {name}",
    "return_judged": "return holds = true or false, with the evidence",
    "return_value": "return holds = ({when})",
    "complete": "complete",
    "fail": "fail, naming what is not met",
    "remark": " — {says}",
    "and": " and ",
    "or": " or ",
    "not": "not {slot}",
    "unknown": "?{name}",
    # --- the moving part of a frame ---
    "results": "Results: {items}",
    "known": "Known: {items}",
    "separator": "; ",
    "evidence": " [{items}]",
    "keeps": " ({value})",
    "now": "Now: {todo}",
    "now_check": "{tool} call {function}.",
    "now_branch": "{tool} select_branch: then or otherwise, as the results say.",
    "now_choose": "{tool} select_branch with one option.",
    "now_act": "call the tool {action}; its result is the evidence.",
    "now_goal": "every check is met: call the tool {action}.",
    "now_ask": "ask the user for {names} unless the dialog has it; then go on.",
    "now_do": "do it, then {tool} select_branch next.",
    "now_emit": "{tool} emit_artifact {name}.",
    "now_return": "{tool} return with holds and the evidence, or undecided.",
    "now_complete": "{tool} complete.",
    "now_fail": "tell the user what is not met, then {tool} fail.",
    # --- whole program ---
    "flat_intro": (
        "The program below is the procedure. Start in the process and take its steps in order: "
        "a call runs that function and gives back whether it holds, with evidence from tools; "
        "an arrow says where to go. Call the goal tool only when the steps lead there; "
        "if they lead to `fail`, refuse and say what is not met."
    ),
    # --- prose ---
    "prose_intro": "How to handle the request {name} ({parameters}).",
    "prose_no_values": "no values needed",
    "prose_steps": "Take these points in order, unless a point says where to go on.",
    "prose_check_must": "This must be so: ",
    "prose_check_want": "Find out whether this is so: ",
    "prose_false": " It is so when “{name}” comes out false.",
    "prose_group_must": "The part “{name}” below must come out {wanted}.",
    "prose_group_want": "Work through the part “{name}” below; wanted is {wanted}.",
    "prose_see": " See “{name}” below{values}.",
    "prose_values": ", for {values}",
    "prose_value": "{name} being {value}",
    "prose_met": " If it is so, go on with point {number}.",
    "prose_unmet": " If not, go on with point {number}.",
    "prose_either": " Go on either way.",
    "prose_on": " If not, go on.",
    "prose_goto": " Go on with point {number}.",
    "prose_branch": (
        "Look at what came out: if {when}, go on with point {then}; otherwise with point "
        "{otherwise}."
    ),
    "prose_holds": "“{slot}” came out true",
    "prose_holds_not": "“{slot}” came out false",
    "prose_always": "in any case",
    "prose_never": "in no case",
    "prose_choose": "Decide: {says}",
    "prose_option": " For “{name}”{says}, go on with point {number}.",
    "prose_option_says": " ({says})",
    "prose_act": "Call {call}.",
    "prose_goal": "Everything required is met: call {call}.",
    "prose_with": "{action} with {values}",
    "prose_without": "{action}",
    "prose_each": ", once for each {element} in {where}",
    "prose_named": " (call the answer {name})",
    "prose_answer": "what stands at {where} in the answer",
    "prose_unknown": "the {name} still to be found",
    "prose_ask": "Ask the user for {names}.",
    "prose_do": "{says}",
    "prose_do_with": " You may use {names} for it.",
    "prose_emit": "Hand over “{name}”.",
    "prose_return_judged": "Judge from what you found whether it is so, and keep the evidence.",
    "prose_return_value": "This part comes out true if {when}, and false otherwise.",
    "prose_complete": "The request is done.",
    "prose_fail": "Refuse, and tell the user what is not met.",
    "prose_groups": "Parts of the requirements",
    "prose_gates": "How to make a condition true together with the user",
    "prose_rules": "How to find out whether a condition is true",
    "prose_function": "“{name}”{parameters}",
    "colon": ": ",
    "prose_parameters": " (for {names})",
    "prose_instead": " Or instead: {calls}.",
    "prose_remark": " ({says})",
    "prose_list_and": ", and ",
    "prose_values_and": " and ",
    # --- official wording ---
    "official_intro": (
        "Conditions are listed as a hierarchy. Under “ALL of these conditions must be met” every "
        "item is required, under “ANY ONE of these conditions must be met” one item is enough, "
        "and under “These steps must be completed in order” the items follow one another. "
        "Numbers mark an order, bullets none. Verify what an action requires before you call it."
    ),
    "official_constrained": "### Actions with Constraints:",
    "official_free": "### Actions without Constraints:",
    "official_all": "ALL of these conditions must be met:",
    "official_any": "ANY ONE of these conditions must be met:",
    "official_in_order": "These steps must be completed in order:",
    "official_first": "ANY ONE of these conditions must be met, tried in this order:",
    "official_none": "None",
    # --- the same as code ---
    "code_intro": (
        "Each action lists what it requires. `require all` needs every line below it, "
        "`require any` needs one, `require in_order` needs every line in sequence, "
        "`require first` needs one, tried in sequence. Verify before you call an action."
    ),
    "code_action": "action {name}({parameters}):",
    "code_all": "require all:",
    "code_any": "require any:",
    "code_in_order": "require in_order:",
    "code_first": "require first:",
    "code_check": "check ",
    "code_none": "pass",
    # --- recipes ---
    "recipes_title": "### How Each Condition Can Be Verified:",
    "recipe_calls": "  call {calls}",
    "recipe_or": "  or {calls}",
    "recipe_gate": "  made true by calling {calls}",
    "recipe_arguments": "  judge from its values; no tool is needed",
    "recipe_none": "  no tool verifies it",
}
