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
    "true_if": "True if: {condition}",
    "all_first": "; check every one, then decide",
    "true_means": "True means: {says}",
    "false_means": "False means: {says}",
    "establishes": "Establishes: {says}",
    "told": "Where a request is refused for this, the user is told only: {says}",
    # --- steps ---
    "check_must": "{call} must be {wanted}; else → {target}",
    "check_find": "find out {call}",
    "found": "; {wanted} → {target}",
    "found_else": ", else → {target}",
    "found_on": ", else go on",
    "either": "; go on either way",
    "bound_as": " (as {slot})",
    "for_each": " for each {element} in {where}",
    "undecided": "undecided",
    "goto": "; → {target}",
    "branch": "if {when} → {then}, else → {otherwise}",
    "choose": "choose: {says}",
    "option": "- {name} → {target}",
    "option_says": ": {says}",
    "act": "tool {call}",
    "goal": "goal tool {call}",
    "supplied": " — {names}: from earlier answers or the user",
    "computed": " — {names}: as computed before",
    "instead": "or instead: {calls}",
    "then": ", then ",
    "ask": "ask the user for {names}, unless the dialog has it",
    "do": "do: {says}",
    "do_with": " (tools: {names})",
    "emit": "hand over artifact {name}",
    "judge_you": "by you: return holds = true or false, with the evidence",
    "judge_values": "by you, from the values; no tool is needed: return holds = true or false",
    "judge_unverified": (
        "no tool on offer tells; by you, from what is known: return holds = true or false, or fail"
    ),
    "judge_gate": (
        "true only if this tool has just succeeded: return holds = true or false; "
        "the user may correct a value and try again"
    ),
    "judge_gate_answer": (
        "true only if this tool has just succeeded and its answer shows it: return holds = true "
        "or false; the user may correct a value and try again"
    ),
    "judge_machine": "by the program; by you only where it cannot tell",
    "judge_gate_machine": (
        "by the program, once the tool has succeeded; the user may correct a value and try again"
    ),
    "judge_fact": (
        "true only if that call has succeeded in this session; do not make it for this check: "
        "return holds = true or false"
    ),
    "judge_fact_machine": (
        "by the program: true only if that call has succeeded in this session; do not make it "
        "for this check"
    ),
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
    "not_met": " (not met: {names})",
    "now": "Now: {todo}",
    "now_check": "{tool} call {function}.",
    "now_check_with": (
        "{tool} call {function} with {names} in its arguments. Ask the user for what the dialog "
        "lacks; if the user cannot give it, {tool} fail and name it."
    ),
    "now_branch": "{tool} select_branch: then or otherwise, as the results say.",
    "now_choose": "{tool} select_branch with one option.",
    "now_act": "call the tool {action}; its result is the evidence.",
    "now_act_with": (
        "call the tool {action} with {names} as earlier answers or the user gave it, never "
        "invented. If nobody can give it, {tool} {way}."
    ),
    "now_act_maybe": (
        "call the tool {action}, with {names} only if the user gave it; its result is the evidence."
    ),
    "now_act_failed": (
        "{action} answered `failed` ({seqs}). If that answers the question, {tool} return with it; "
        "else try other values or another way; if nothing tells, {tool} return undecided."
    ),
    "now_goal": "every check is met: call the tool {action}.",
    "now_goal_maybe": (
        "every check is met: call the tool {action}, with {names} only if the user gave it."
    ),
    "now_goal_failed": (
        "{action} answered `failed` ({seqs}). Correct the values with the user and call it again, "
        "or {tool} fail with that reason."
    ),
    "now_ask": (
        "ask the user for {names}, unless the dialog has it, and go on. If the user cannot give "
        "it, {tool} {way}."
    ),
    "now_ask_act": (
        "ask the user for {names}, unless the dialog has it, and call the tool {action} with it. "
        "If the user cannot give it, {tool} {way}."
    ),
    "way_gate": "return holds = false",
    "way_fail": "fail, naming it",
    "now_do": "do it, then {tool} select_branch next.",
    "now_emit": "{tool} emit_artifact {name}.",
    "now_return": "{tool} return with holds and the evidence, or undecided.",
    "now_return_machine": (
        "the program cannot tell: {tool} return with holds and the evidence, or undecided."
    ),
    "now_complete": "{tool} complete; its summary tells the user what was done.",
    "now_fail": "{tool} fail; its reason tells the user what is not met.",
    "now_fail_told": (
        "{tool} fail; its reason is for the records alone. Not a word to the user of what is not "
        "met, or of what a tool answered. Tell the user only: {says}"
    ),
    # --- whole program ---
    "flat_intro": (
        "The program below is the procedure. Start in the process and take its steps in order: "
        "a check is the function of that name further below, which comes out true or false by "
        "what tools answer; an arrow says where to go. Call the goal tool only when the steps "
        "lead there; if they lead to `fail`, refuse and say what is not met."
    ),
    # --- prose ---
    "prose_intro": "How to handle the request {name} ({parameters}).",
    "prose_no_values": "no values needed",
    "prose_steps": "Take these points in order, unless a point says where to go on.",
    "prose_check_must": "This must be so: ",
    "prose_check_find": "Find out “{name}”. ",
    "prose_must": " “{name}” must come out {wanted}.",
    "prose_group_must": "The part “{name}” below must come out {wanted}.",
    "prose_see": " See “{name}” below{values}.",
    "prose_values": ", for {values}",
    "prose_value": "{name} being {value}",
    "prose_met": " If it comes out {wanted}, go on with point {number}.",
    "prose_unmet": " Otherwise, go on with point {number}.",
    "prose_either": " Go on either way.",
    "prose_on": " Otherwise, go on.",
    "prose_goto": " Go on with point {number}.",
    "prose_branch": (
        "Look at what came out: if {when}, go on with point {then}; otherwise with point "
        "{otherwise}."
    ),
    "prose_holds": "“{slot}” came out true",
    "prose_holds_not": "“{slot}” came out false",
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
    "prose_unknown": "`{name}` (still to be found)",
    "prose_supplied": " Take {names} from earlier answers or ask the user; never invent it.",
    "prose_ask": "Ask the user for {names}, unless the dialog has it.",
    "prose_do": "{says}",
    "prose_do_with": " You may use {names} for it.",
    "prose_emit": "Hand over “{name}”.",
    "prose_judge_you": "Judge from the answers whether it is true or false; keep the evidence.",
    "prose_judge_values": "Judge from the values whether it is true or false; no tool is needed.",
    "prose_judge_unverified": (
        "No tool on offer tells: judge by what is known whether it is true or false, else refuse."
    ),
    "prose_judge_gate": (
        "It is true only if this tool has just succeeded; the user may correct a value and try "
        "again."
    ),
    "prose_judge_gate_answer": (
        "It is true only if this tool has just succeeded and its answer shows it; the user may "
        "correct a value and try again."
    ),
    "prose_judge_fact": (
        "It is true only if that call has succeeded in this session; do not make it for this check."
    ),
    "prose_return_fixed": "At this point, this part comes out {value}.",
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
    "official_otherwise": "If you refuse for this: {told}",
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
