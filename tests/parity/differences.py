"""
Where Gatewright is meant to differ from ADK 2.13, and why; `docs/parity.md` is made from this file.

A difference that is found and not listed here fails, and so does one that is
listed and not found.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Says:
    """
    What the two sides say at some places, as JSON text in which `*` stands for anything.

    `at` maps scripts (several with ` | ` between them) to places: dotted paths in
    which `*` stands for one step and `**` for any number of them. With `whole` a
    place is compared as one, and with `alone` it is a turn that Gatewright
    refuses or repeats: everything else is compared with ADK's conversation
    without that message. `like` names the step of the same recording whose reply
    is, but for other listed differences, what Gatewright says.
    """

    at: dict[str, list[str]]
    adk: str
    gatewright: str
    whole: bool = False
    alone: bool = False
    like: str | None = None

    def places(self, script: str) -> list[str]:
        """Where this is said in a script."""
        return [place for names, places in self.at.items() if script in names.split(" | ") for place in places]


@dataclass(frozen=True)
class Difference:
    """An intended difference: the rows of the contract that it rests on, and why it is one."""

    title: str
    rows: list[str]
    why: str
    says: list[Says]


_ASKED = [
    f"{where}.events.*.{place}"
    for where in ("turns.*", "session")
    for place in (
        "content.parts.0.functionCall.id",
        "content.parts.0.functionCall.args.interruptId",
        "longRunningToolIds.0",
    )
]
"""Where a gate event has its interrupt id."""
_ANSWERED = ["session.events.*.content.parts.0.functionResponse.id"]
"""Where an answer has it."""
_RELEASES = "release | release, revised twice | release, rejected | release, malformed"
_DISPATCHED = '{*"path": "DatasetRelease@1/dispatch_transform@*'

_REST = ("code", "todo", "gate", "open", "faults")
"""What a rejection has beside ADK's sentence."""
_BARE = '{"status": 500, "reply": "Internal Server Error"}'
"""How ADK's server says that something was wrong."""

DIFFERENCES = [
    Difference(
        "A functionResponse without an id answers nothing",
        ["B05", "B17"],
        "ADK starts the whole pipeline over, with no input; an answer whose gate is not named is a mistake of the client.",
        [
            Says(
                {"missing id | empty id": ["turns.answers"]},
                '{"events": [*"plan for "*"plan-gate-1"*], "rejected": null}',
                '{"events": [], "rejected": "ValueError: Function response id is required to resume an invocation."}',
                alone=True,
            ),
            Says(
                {"adk_web": ["58_*"]},
                '{"status": 200, "reply": [*"output": {"plan": "plan for *"plan-gate-1"*]}',
                '{"status": 422, "reply": {"detail": "Function response id is required to resume an invocation.", "code": "missing_id"*',
                whole=True,
            ),
            Says(
                {"adk_web": ["94_*"]},
                '{"status": 200, "reply": [*"output": {"plan": "plan for *"plan-gate-1"*]}',
                '{"status": 200, "reply": [{"error": "ValueError: Function response id is required to resume an invocation.", "error_details": {"error_type": "ValueError", *}, "code": "missing_id"*',
                whole=True,
            ),
            Says(
                {"adk_web": ["59_*", "95_*"]},
                '{*"events": [*"plan for hello"*"plan for None"*]*',
                '{*"events": [*"plan for hello"*"plan-gate-1"*]*',
                whole=True,
                like="34_session_after_open",
            ),
        ],
    ),
    Difference(
        "Two answers to one gate in one message are none",
        ["B13"],
        "ADK takes the last one; which of two contradicting answers was meant is not for the order to say.",
        [
            Says(
                {"twice in one message": ["turns.answers"]},
                '{"events": [*"comment": "second"*"name-gate-1"*], "rejected": null}',
                '{"events": [], "rejected": "ValueError: 2 answers of this message are for plan-gate-1. Send one."}',
                alone=True,
            ),
        ],
    ),
    Difference(
        "A message that says nothing opens nothing",
        ["B11", "B18"],
        "ADK runs the pipeline with no input, also while a run of the session waits at a gate.",
        [
            Says(
                {"empty text": ["turns.says nothing"]},
                '{"events": [*"plan for "*"plan-gate-1"*], "rejected": null}',
                '{"events": [], "rejected": "ValueError: The message says nothing, so there is nothing to open a run with."}',
                alone=True,
            ),
            Says(
                {"no message | no message at a gate": ["turns.says nothing"]},
                '{"events": [*"plan for None"*"plan-gate-1"*], "rejected": null}',
                '{"events": [], "rejected": "ValueError: There is no new_message, so there is nothing to do."}',
                alone=True,
            ),
            Says(
                {"unknown invocation": ["turns.pokes"]},
                '{"events": [*"plan for None"*"plan-gate-1"*], "rejected": null}',
                '{"events": [], "rejected": "ValueError: This session has no invocation e-unknown."}',
                alone=True,
            ),
            Says(
                {"adk_web": ["83_*"]},
                '{"status": 200, "reply": [*"output": {"plan": "plan for *"plan-gate-1"*]}',
                '{"status": 422, "reply": {"detail": "There is no new_message, so there is nothing to do.", "code": "no_message"*',
                whole=True,
            ),
            Says(
                {"adk_web": ["119_*"]},
                '{"status": 200, "reply": [*"output": {"plan": "plan for *"plan-gate-1"*]}',
                '{"status": 200, "reply": [{"error": "ValueError: There is no new_message, so there is nothing to do.", "error_details": {"error_type": "ValueError", *}, "code": "no_message"*',
                whole=True,
            ),
            Says(
                {"adk_edge": ["31_*"]},
                '{"status": 200, "reply": [*"invocationId": "<invocation>"*',
                '{"status": 200, "reply": [{"error": "ValueError: This session has no invocation PLACEHOLDER.", "error_details": {"error_type": "ValueError", *}, "code": "unknown_invocation"*',
                whole=True,
            ),
        ],
    ),
    Difference(
        "Text at a gate is refused and says which gate waits",
        ["L01", "B07"],
        "ADK runs everything again from the start and leaves the gate behind; `on_text = open` has it so, with ids of its own for the second run.",
        [
            Says(
                {"text at a gate": ["turns.says"]},
                '{"events": [*"plan for yes, approve"*"plan-gate-1"*], "rejected": null}',
                '{"events": [], "rejected": "ValueError: Invocation <invocation> of this session is open (it waits at plan-gate-1), so text would open another beside it."}',
                alone=True,
            ),
            Says(
                {"adk_web": ["68_*", "88_*"]},
                '{"status": 200, "reply": [*"output": {"plan": "plan for *"plan-gate-1"*]}',
                '{"status": 409, "reply": {"detail": "Invocation <invocation> of this session is open (it waits at *), so text would open another beside it.", "code": "session_busy"*',
                whole=True,
            ),
            Says(
                {"adk_web": ["104_*", "124_*"]},
                '{"status": 200, "reply": [*"output": {"plan": "plan for *"plan-gate-1"*]}',
                '{"status": 200, "reply": [{"error": "ValueError: Invocation <invocation> of this session is open (it waits at *), so text would open another beside it.", "error_details": {"error_type": "ValueError", *}, "code": "session_busy"*',
                whole=True,
            ),
            Says(
                {"adk_web": ["69_*", "105_*"]},
                '{*"events": [*"plan for hello"*"plan for yes approve"*]*',
                '{*"events": [*"plan for hello"*"plan-gate-1"*]*',
                whole=True,
                like="34_session_after_open",
            ),
            Says(
                {"adk_web": ["70_*.reply.*.invocationId", "106_*.reply.*.invocationId"]},
                "<invocation> of another place",
                "<invocation> of another place",
            ),
        ],
    ),
    Difference(
        "Text that names an invocation is refused",
        ["B10"],
        "ADK throws the text away and says nothing.",
        [
            Says(
                {"text with an invocation": ["turns.says"]},
                '{"events": [], "rejected": null}',
                '{"events": [], "rejected": "ValueError: Text opens a run of its own, so it cannot belong to invocation <invocation>."}',
                alone=True,
            ),
            Says(
                {"adk_edge": ["58_*"]},
                '{"status": 200, "reply": []}',
                '{"status": 409, "reply": {"detail": "Text opens a run of its own, so it cannot belong to invocation <invocation>.", "code": "text_with_invocation"*',
                whole=True,
            ),
        ],
    ),
    Difference(
        "An invalid answer is not kept, and the gate stays open",
        ["D01", "D02", "D03", "D04"],
        "ADK keeps it, and from then on every answer of that invocation fails as this one did; the reason is told in the words of the schema instead of pydantic's.",
        [
            Says(
                {"invalid then valid": ["turns.errs"]},
                '{"events": [], "rejected": "WorkflowDataError: Validation failed for interrupt plan-gate-1: Validation failed for object schema: 1 validation error*"}',
                '{"events": [], "rejected": "WorkflowDataError: Validation failed for interrupt plan-gate-1: $.approved: got \\"maybe\\", wanted true or false"}',
                alone=True,
            ),
            Says(
                {"no response": ["turns.errs"]},
                '{"events": [], "rejected": "WorkflowDataError: Validation failed for interrupt plan-gate-1: Validation failed for object schema: 1 validation error*"}',
                '{"events": [], "rejected": "WorkflowDataError: Validation failed for interrupt plan-gate-1: $: got null, wanted an object"}',
                alone=True,
            ),
            Says(
                {"null for a name": ["turns.errs"]},
                '{"events": [], "rejected": "WorkflowDataError: Validation failed for interrupt g: Validation failed for object schema: 1 validation error*"}',
                '{"events": [], "rejected": "WorkflowDataError: Validation failed for interrupt g: $.name: got null, wanted text"}',
                alone=True,
            ),
            Says(
                {"one invalid of two": ["turns.errs"]},
                '{"events": [], "rejected": "WorkflowDataError: Validation failed for interrupt gate-b: Failed to coerce data to integer*"}',
                '{"events": [], "rejected": "WorkflowDataError: Validation failed for interrupt gate-b: $: got \\"seven\\", wanted a whole number"}',
                alone=True,
            ),
            Says(
                {"adk_web": ["62_*"]},
                '{"status": 500, "reply": "Internal Server Error"}',
                '{"status": 422, "reply": {"detail": "Validation failed for interrupt plan-gate-1: $.approved: got \\"maybe\\", wanted true or false", "code": "invalid"*',
                whole=True,
            ),
            Says(
                {"adk_web": ["79_*"]},
                '{"status": 500, "reply": "Internal Server Error"}',
                '{"status": 422, "reply": {"detail": "Validation failed for interrupt plan-gate-1: $: got \\"yes\\", wanted an object", "code": "invalid"*',
                whole=True,
            ),
            Says(
                {"adk_web": ["98_*"]},
                '{"status": 200, "reply": [{"error": "WorkflowDataError: Validation failed for interrupt *: Validation failed for object schema: 1 validation error*}]}',
                '{"status": 200, "reply": [{"error": "WorkflowDataError: Validation failed for interrupt plan-gate-1: $.approved*"code": "invalid"*"id": "plan-gate-1#again-*',
                whole=True,
            ),
            Says(
                {"adk_web": ["115_*"]},
                '{"status": 200, "reply": [{"error": "WorkflowDataError: Validation failed for interrupt *: Validation failed for object schema: 1 validation error*}]}',
                '{"status": 200, "reply": [{"error": "WorkflowDataError: Validation failed for interrupt plan-gate-1: $: got*"code": "invalid"*"id": "plan-gate-1#again-*',
                whole=True,
            ),
            Says(
                {"adk_edge": ["34_*", "44_*"]},
                '{"status": 200, "reply": [{"error": "WorkflowDataError: Validation failed for interrupt *: Validation failed for object schema: 1 validation error*}]}',
                '{"status": 200, "reply": [{"error": "WorkflowDataError: Validation failed for interrupt g: $*"code": "invalid"*"id": "g#again-*',
                whole=True,
            ),
            Says(
                {"adk_web": ["63_*", "99_*"]},
                '{*"events": [*"plan for hello"*"response": {"approved": "maybe"}*]*',
                '{*"events": [*"plan for hello"*"plan-gate-1"*]*',
                whole=True,
                like="34_session_after_open",
            ),
            Says(
                {"adk_edge": ["35_*.reply.events"]},
                '[*"response": {"name": null*]',
                '[*"output": "w"*"id": "g"*]',
                whole=True,
            ),
            Says(
                {"adk_web": ["64_*"]},
                '{"status": 500, "reply": "Internal Server Error"}',
                '{"status": 200, "reply": [*"discovered"*"name-gate-1"*]}',
                whole=True,
                like="45_sse_answer1_nostream",
            ),
            Says(
                {"adk_web": ["100_*"]},
                '{"status": 200, "reply": [{"error": "WorkflowDataError: Validation failed for interrupt *: Validation failed for object schema: 1 validation error*}]}',
                '{"status": 200, "reply": [*"discovered"*"name-gate-1"*]}',
                whole=True,
                like="45_sse_answer1_nostream",
            ),
            Says(
                {"adk_edge": ["36_*"]},
                '{"status": 200, "reply": [{"error": "WorkflowDataError: Validation failed for interrupt *: Validation failed for object schema: 1 validation error*}]}',
                '{"status": 200, "reply": [*"output": {"got": {"name": "n", "tags": ["a"], "note": null}}*]}',
                whole=True,
            ),
            Says(
                {"adk_web": ["65_*.reply.events", "101_*.reply.events"]},
                '[*"response": {"approved": "maybe"}*"response": {"approved": true}*]',
                '[*"plan-gate-1"*"response": {"approved": true}*"discovered"*"name-gate-1"*]',
                whole=True,
            ),
        ],
    ),
    Difference(
        "The whole schema is checked",
        ["D09"],
        "ADK checks the types of an object's own fields and nothing else, so a limit of 1000 passes where 100 is the most.",
        [
            Says(
                {"out of range": ["turns.errs"]},
                '{"events": [*"limit": 1000*"name-gate-1"*], "rejected": null}',
                '{"events": [], "rejected": "WorkflowDataError: Validation failed for interrupt plan-gate-1: $.limit: got 1000, wanted at most 100"}',
                alone=True,
            ),
            Says(
                {"out of enum": ["turns.errs"]},
                '{"events": [*"level": "banana"*"name-gate-1"*], "rejected": null}',
                '{"events": [], "rejected": "WorkflowDataError: Validation failed for interrupt plan-gate-1: $.level: got \\"banana\\", wanted *"}',
                alone=True,
            ),
            Says(
                {"wrong items": ["turns.errs"]},
                '{"events": [*"tags": [1, 2]*], "rejected": null}',
                '{"events": [], "rejected": "WorkflowDataError: Validation failed for interrupt g: $.tags[0]: got 1, wanted text; $.tags[1]: got 2, wanted text"}',
                alone=True,
            ),
            Says(
                {"adk_web": ["73_*", "109_*"]},
                '{"status": 200, "reply": [*"limit": 1000, "level": "banana"*]}',
                '{"status": *, "reply": *Validation failed for interrupt plan-gate-1: $.limit: got 1000, wanted at most 100; $.level: got \\"banana\\", wanted one of \\"low\\", \\"high\\""*"code": "invalid"*',
                whole=True,
            ),
            Says(
                {"adk_edge": ["39_*"]},
                '{"status": 200, "reply": [*"tags": [1, 2]*]}',
                '{"status": 200, "reply": [{"error": "WorkflowDataError: Validation failed for interrupt g: $.tags[0]: got 1, wanted text; $.tags[1]: got 2, wanted text"*"code": "invalid"*"id": "g#again-*',
                whole=True,
            ),
        ],
    ),
    Difference(
        "A field that is left out has its default",
        ["D07", "D08"],
        "ADK puts null there, which the model that the schema was made from does not even take.",
        [
            Says(
                {
                    "gated, defaults left out": [
                        "turns.approves.events.*.output.approval.comment",
                        "session.events.*.output.approval.comment",
                    ]
                },
                "null",
                '""',
            ),
            Says(
                {
                    "gated, defaults left out": [
                        "turns.approves.events.*.output.approval.limit",
                        "session.events.*.output.approval.limit",
                    ]
                },
                "null",
                "10",
            ),
            Says(
                {
                    "gated, defaults left out": [
                        "turns.approves.events.*.output.approval.level",
                        "session.events.*.output.approval.level",
                    ]
                },
                "null",
                '"low"',
            ),
            Says(
                {
                    "adk_web | adk_edge": [
                        "*.reply.*.output.approval.comment",
                        "*.reply.events.*.output.approval.comment",
                    ]
                },
                "null",
                '""',
            ),
            Says({"adk_api_server": ["*.reply.*.output.approval.comment"]}, "null", '""'),
            Says(
                {"adk_web | adk_edge": ["*.reply.*.output.approval.limit", "*.reply.events.*.output.approval.limit"]},
                "null",
                "10",
            ),
            Says({"adk_api_server": ["*.reply.*.output.approval.limit"]}, "null", "10"),
            Says(
                {"adk_web | adk_edge": ["*.reply.*.output.approval.level", "*.reply.events.*.output.approval.level"]},
                "null",
                '"low"',
            ),
            Says({"adk_api_server": ["*.reply.*.output.approval.level"]}, "null", '"low"'),
        ],
    ),
    Difference(
        "Text stays text",
        ["D06", "C02"],
        "ADK reads `42` as JSON although the schema asks for a string, refuses the number, and the session is dead.",
        [
            Says(
                {"gated, number as a name": ["turns.names"]},
                '{"events": [], "rejected": "WorkflowDataError: Validation failed for interrupt name-gate-1: Failed to coerce data to string*"}',
                '{"events": [*"Report named *42* is done"*{"report": "42"}*], "rejected": null}',
                whole=True,
            ),
            Says({"gated, number as a name": ["session.events.+7"]}, "absent", '*"Report named *42* is done"*'),
            Says({"gated, number as a name": ["session.events.+8"]}, "absent", '*{"report": "42"}*'),
        ],
    ),
    Difference(
        "The same answer again gets its own turn again",
        ["L02", "L04"],
        "ADK keeps it as another event and answers nothing, which a client cannot tell from an answer that was lost.",
        [
            Says(
                {"the same answer twice": ["turns.approves again"]},
                '{"events": [], "rejected": null}',
                '{"events": [*"gated@1/discover@1"*"name-gate-1"*], "rejected": null}',
                alone=True,
            ),
            Says(
                {"the same answer late": ["turns.names again"]},
                '{"events": [], "rejected": null}',
                '{"events": [*"Report named*{"report": "q3"}*], "rejected": null}',
                alone=True,
            ),
        ],
    ),
    Difference(
        "Another answer to an answered gate is refused",
        ["L02", "L04"],
        "ADK keeps it and lets it do nothing, or everything: at a join the last one wins.",
        [
            Says(
                {"another answer": ["turns.rejects"]},
                '{"events": [], "rejected": null}',
                '{"events": [], "rejected": "ValueError: plan-gate-1 was answered by user at <time>; the first admitted answer is final. Open now: name-gate-1."}',
                alone=True,
            ),
            Says(
                {"another answer late": ["turns.renames"]},
                '{"events": [], "rejected": null}',
                '{"events": [], "rejected": "ValueError: the run is completed; it takes no more answers. name-gate-1 was answered by user at <time>."}',
                alone=True,
            ),
            Says(
                {"a twice, then b": ["turns.a again"]},
                '{"events": [], "rejected": null}',
                '{"events": [], "rejected": "ValueError: gate-a was answered by user at <time>; the first admitted answer is final. Open now: gate-b."}',
                alone=True,
            ),
            Says(
                {"adk_web | adk_api_server": ["38_*"]},
                '{"status": 200, "reply": []}',
                '{"status": 409, "reply": {"detail": "the run is completed; it takes no more answers. name-gate-1 was answered by user at <time>.", "code": "frame_closed"*',
                whole=True,
            ),
            Says({"adk_web | adk_api_server": ["39_*.reply.events.9"]}, '{*"response": {"result": "q4"}*', "absent"),
            Says(
                {"adk_edge": ["16_*"]},
                '{"status": 200, "reply": []}',
                '{"status": 409, "reply": {"detail": "gate-a was answered by user at <time>; the first admitted answer is final. Open now: gate-b.", "code": "already_answered"*',
                whole=True,
            ),
            Says(
                {"adk_edge": ["17_*.reply.0.output.a", "17_*.reply.1.output.joined.a"]},
                '"second"',
                '"first"',
            ),
            Says(
                {"adk_edge": ["18_*.reply.events"]},
                '[*"response": {"result": "second"}*"output": {"b": 1, "a": "second"}*]',
                '[*"response": {"result": "first"}*"output": {"b": 1, "a": "first"}*]',
                whole=True,
            ),
            Says(
                {"adk_edge": ["55_*"]},
                '{"status": 200, "reply": []}',
                '{"status": 409, "reply": {"detail": "plan-gate-1 was answered by user at <time>; the first admitted answer is final. Open now: name-gate-1.", "code": "already_answered"*',
                whole=True,
            ),
            Says({"adk_edge": ["56_*.reply.events.6"]}, '{*"response": {"approved": false}*', "absent"),
        ],
    ),
    Difference(
        "Of a message that repeats one answer and gives another, the new one is kept",
        ["L07"],
        "ADK keeps both; what was admitted once is not admitted again.",
        [
            Says(
                {"answered and open id": ["session.events.4.content.parts"]},
                '[*"id": "gate-a"*"id": "gate-b"*]',
                '[{"functionResponse": {"id": "gate-b"*"response": {"result": 7}}}]',
                whole=True,
            ),
        ],
    ),
    Difference(
        "An answer to one round of a loop cannot be taken for another's",
        ["H02", "L02"],
        "ADK takes an answer that was sent twice as the answer to the next round too.",
        [
            Says(
                {"the first round's answer again": ["turns.repeats"]},
                '{"events": [*"loop@1/decide@2"*"loop@1/review@3"*], "rejected": null}',
                '{"events": [*"loop@1/decide@1"*"loop@1/review@2"*], "rejected": null}',
                alone=True,
            ),
        ],
    ),
    Difference(
        "A run that failed takes no more answers",
        ["J02"],
        "ADK runs the failed node again with the new answer; a step is retried by its own policy, and text opens another run.",
        [
            Says(
                {"after a failure": ["turns.goes again"]},
                '{"events": [*"kaboom b"*], "rejected": "RuntimeError: kaboom b"}',
                '{"events": [], "rejected": "ValueError: the run is failed; it takes no more answers. g was answered by user at <time>."}',
                alone=True,
            ),
            Says(
                {"after a failure": ["turns.pokes"]},
                '{"events": [*"kaboom b"*], "rejected": "RuntimeError: kaboom b"}',
                '{"events": [], "rejected": null}',
                alone=True,
            ),
            Says(
                {"adk_edge": ["29_*"]},
                '{"status": 200, "reply": [*"kaboom b"*]}',
                '{"status": 200, "reply": [{"error": "ValueError: the run is failed; it takes no more answers. g was answered by user at <time>.", "error_details": {"error_type": "ValueError", *}, "code": "frame_closed"*',
                whole=True,
            ),
            Says(
                {"adk_edge": ["30_*"]},
                '{*"events": [*"kaboom a"*"kaboom b"*]*',
                '{*"events": [*"kaboom a"*]*',
                whole=True,
                like="28_boom_after_sse_session",
            ),
        ],
    ),
    Difference(
        "Each arrival at a gate has an id of its own",
        ["H01", "H02", "B07"],
        "ADK uses one id for all rounds and runs, so that its own UI shows no second form (google/adk-python#5617).",
        [
            Says(
                {"loop, revised twice | the first round's answer again": [*_ASKED, *_ANSWERED]},
                '"review"',
                '"review~*"',
            ),
            Says({"gated, again": [*_ASKED, *_ANSWERED]}, '"plan-gate-1"', '"plan-gate-1@2"'),
            Says({"gated, again": _ASKED}, '"name-gate-1"', '"name-gate-1@2"'),
            Says({"release, revised twice": [*_ASKED, *_ANSWERED]}, '"review_profile"', '"review_profile~*"'),
            Says({"release, revised twice": [*_ASKED, *_ANSWERED]}, '"confirm_release"', '"confirm_release~*"'),
            Says({"release, revised twice": [*_ASKED, *_ANSWERED]}, '"transform"', '"transform~*"'),
            Says(
                {
                    "adk_edge": [
                        "21_*.reply.2.content.parts.0.functionCall.id",
                        "21_*.reply.2.content.parts.0.functionCall.args.interruptId",
                        "21_*.reply.2.longRunningToolIds.0",
                    ]
                },
                '"review"',
                '"review~2"',
            ),
            Says(
                {
                    "adk_edge": [
                        "22_*.reply.2.content.parts.0.functionCall.id",
                        "22_*.reply.2.content.parts.0.functionCall.args.interruptId",
                        "22_*.reply.2.longRunningToolIds.0",
                    ]
                },
                '"review"',
                '"review~3"',
            ),
            Says(
                {
                    "adk_edge": [
                        "24_*.reply.events.*.content.parts.0.functionCall.id",
                        "24_*.reply.events.*.content.parts.0.functionCall.args.interruptId",
                        "24_*.reply.events.*.longRunningToolIds.0",
                        "24_*.reply.events.*.content.parts.0.functionResponse.id",
                    ]
                },
                '"review"',
                '"review~*"',
            ),
        ],
    ),
    Difference(
        "No branch on parallel gates",
        ["A07", "B15"],
        "A hand-written pipeline is code and declares no branches; `nodeInfo.path` says where an event belongs.",
        [
            Says(
                {
                    "par, a then b | par, b then a | par, both | par, both the other way round | one invalid of two"
                    " | a twice, then b | answered and open id": [
                        "turns.opens.events.*.branch",
                        "session.events.*.branch",
                    ]
                },
                '"*@1"',
                "absent",
            ),
            Says(
                {_RELEASES: ["turns.*.events.*.branch", "session.events.*.branch"]},
                '"*"',
                "absent",
            ),
            Says({"adk_edge": ["*.reply.*.branch", "*.reply.events.*.branch"]}, '"*@1"', "absent"),
        ],
    ),
    Difference(
        "A gate that a job answers is open before the job is started",
        ["A12", "B14"],
        "A job that is quicker than its run must find its gate; ADK's graph starts it first, and an answer in between is unknown.",
        [
            Says({_RELEASES: ["turns.*.events.1", "session.events.*"]}, _DISPATCHED, "absent"),
            Says({_RELEASES: ["turns.*.events.+3", "session.events.+*"]}, "absent", _DISPATCHED),
        ],
    ),
    Difference(
        "What the pipeline decides in Python is no node",
        ["G01", "G09", "M05"],
        "ADK's graph needs a join, a choice and a last node; here they are lines of the workflow, so what is said there and"
        " what is returned are the workflow's own.",
        [
            Says(
                {_RELEASES: ["turns.*.events.*", "session.events.*"]}, '{*"path": "DatasetRelease@1/decide@*', "absent"
            ),
            Says(
                {
                    "release, revised twice | release, rejected": [
                        "turns.*.events.0.nodeInfo.path",
                        "session.events.*.nodeInfo.path",
                    ]
                },
                '"DatasetRelease@1/decide@*"',
                '"DatasetRelease@1"',
            ),
            Says(
                {_RELEASES: ["turns.*.events.2.nodeInfo.path", "session.events.*.nodeInfo.path"]},
                '"DatasetRelease@1/outcome@1"',
                '"DatasetRelease@1"',
            ),
            Says(
                {_RELEASES: ["turns.*.events.2.nodeInfo.outputFor.0", "session.events.*.nodeInfo.outputFor.0"]},
                '"DatasetRelease@1/outcome@1"',
                "absent",
            ),
        ],
    ),
    Difference(
        "The function's name is ADK's in the session, whatever a client wrote",
        ["B08"],
        "ADK ignores the name and keeps it; what is kept here is the answer, and its name says nothing.",
        [
            Says(
                {"gated, any name": ["session.events.3.content.parts.0.functionResponse.name"]},
                '"anything"',
                '"adk_request_input"',
            ),
        ],
    ),
    Difference(
        "An empty text beside an answer is not kept",
        ["B03"],
        "It is tolerated as with ADK, and says nothing.",
        [
            Says(
                {"gated, empty text beside": ["session.events.3.content.parts"]},
                '[{"text": ""}, {"functionResponse": {"id": "plan-gate-1"*',
                '[{"functionResponse": {"id": "plan-gate-1"*',
                whole=True,
            ),
        ],
    ),
    # What a client of the HTTP API sees besides
    Difference(
        "A rejection says what it is and what to do",
        ["W01", "W02"],
        "ADK's `/run` answers 500 with no word, and its `/run_sse` with a sentence alone; the sentence is the same here, and a program can read the rest.",
        [
            Says({"adk_web | adk_api_server": [f"*.reply.{name}" for name in _REST]}, "absent", "*"),
            Says({"adk_web | adk_edge": [f"*.reply.*.{name}" for name in _REST]}, "absent", "*"),
            Says(
                {"adk_web": ["55_*"]},
                _BARE,
                '{"status": 422, "reply": {"detail": "Message cannot contain both function responses and text. Function responses resume an existing invocation while text starts a new one.", "code": "mixed_message"*',
                whole=True,
            ),
            Says(
                {"adk_web": ["57_*"]},
                _BARE,
                '{"status": 409, "reply": {"detail": "Function call not found for function response ids: {\'nope\'}. Ensure each function response ID matches an existing function call in the session history.", "code": "unknown_gate"*',
                whole=True,
            ),
        ],
    ),
    Difference(
        "A refused answer's form is shown again",
        ["W02", "D03"],
        "ADK's UI takes a form away once it has sent an answer; a copy of the gate event under another id, which no session keeps, brings it back.",
        [
            Says(
                {"adk_web": ["98_*", "115_*"], "adk_edge": ["34_*", "39_*", "44_*"]},
                '{"status": 200, "reply": [{*}]}',
                '{"status": 200, "reply": [{"error": *}, {*#again-*"message": "* (not accepted: Validation failed*}]}',
                whole=True,
            ),
        ],
    ),
    Difference(
        "The first node is given the text",
        [],
        "ADK gives it the whole message, whose printed form the loop sample then takes for words.",
        [
            Says(
                {"adk_edge": ["20_*.reply.0.output.draft", "24_*.reply.events.1.output.draft"]}, '"parts=[Part(*', '"x"'
            ),
            Says(
                {
                    "adk_edge": [
                        "20_*.reply.1.content.parts.0.functionCall.args.message",
                        "24_*.reply.events.2.content.parts.0.functionCall.args.message",
                    ]
                },
                '"ok? *parts=[Part(*',
                "\"ok? {'draft': 'x'}\"",
            ),
        ],
    ),
    Difference(
        "One server with ADK's developer endpoints",
        [],
        "`adk api_server` leaves out what `adk web` has for its UI; `gatewright serve` always has it.",
        [
            Says(
                {"adk_api_server": [f"{step:02}_*" for step in range(7, 22)]},
                '{"status": 404*',
                '{"status": *',
                whole=True,
            ),
        ],
    ),
    Difference(
        "Its own name and release",
        [],
        "It is not ADK, and tells nobody anything.",
        [
            Says({"adk_web | adk_api_server": ["02_*.reply.version"]}, '"2.13.0"', '"*"'),
            Says({"adk_web | adk_api_server": ["02_*.reply.server"]}, "absent", '"gatewright"'),
            Says({"adk_web": ["19_*.reply.telemetry", "20_*.reply.telemetry"]}, "null", "false"),
            Says({"adk_web": ["20_*.reply.logo"]}, "absent", '{"text": "Gatewright"*'),
            Says({"adk_web": ["21_*.reply.logo_text"]}, "null", '"Gatewright"'),
            Says({"adk_web": ["21_*.reply.logo_image_url"]}, "null", '"*"'),
            Says(
                {
                    "adk_web": ["06_*.reply.detail", "85_*.reply.detail", "121_*.reply.detail"],
                    "adk_api_server": ["06_*.reply.detail"],
                },
                "\"Agent not found: 'nope'. No matching directory or module exists in 'agents/nope'.\"",
                "\"Agent not found: 'nope'.\"",
            ),
        ],
    ),
    Difference(
        "A graph is what its author drew",
        [],
        "A pipeline is code; its picture has names, kinds and edges, and none of the settings of ADK's nodes. ADK's own `graph` fails for a workflow.",
        [
            Says(
                {
                    "adk_web": [
                        f"07_*.reply.root_agent.**{name}"
                        for name in ("wait_for_output", "require_confirmation", "parameter_binding")
                    ]
                },
                "*",
                "absent",
            ),
            Says({"adk_web": ["07_*.reply.root_agent.edges"]}, "[[*", "absent"),
            Says({"adk_web": ["07_*.reply.root_agent.graph.**description"]}, '"Cold start work."', '""'),
            Says(
                {"adk_web": ["08_*.reply.*", "09_*.reply.*"]},
                '{"dotSrc": "// Workflow Visualization*',
                '{"dotSrc": "digraph {*',
                whole=True,
            ),
            Says({"adk_web": ["10_*", "11_*"]}, _BARE, '{"status": 200, "reply": {"dotSrc": "digraph {*', whole=True),
        ],
    ),
]
