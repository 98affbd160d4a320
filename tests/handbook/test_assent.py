"""A yes is a closed choice: a reply with any word more is neither a yes nor a no."""

from __future__ import annotations

import pytest

from sopilot.handbook.model import ASK_USER, CONFIRM
from sopilot.handbook.yes_or_no import assent, reply_to

YES = """\
yes|Yes.|YES!|Y|ok|Okay, thanks|I agree|Yes, I confirm. Please go ahead.|Sure, do it|I confirm this.
Yes, that's correct. Thank you!|Yes please|Yes, please go ahead.|yes, please, thank you|yes yes
confirm|Yes, confirm|Confirmed.|Please proceed.|yes, you can proceed|👍|👍🏽 ok|✔️ yes|ｙｅｓ
Yes, correct|that's right|That is correct.|I am sure|Yes, thank you very much!|Yes, I do.
Thanks, yes|Of course, go ahead|是的|好的，请继续|没问题，继续吧|确认|好|行吧|对对对|嗯好
可以，谢谢您|OK好的|是""".replace("\n", "|")

CORRECTIONS = """\
Yes, 2 adults and 3 rooms.|Please confirm the amount to me.|ok is this from savings
Yes, 50 to carol please.|Yes, for booking b-2 please|yes, 50 dollars|Yes, 500 $|yes -500|yes, 500%
Yes to the refund, no to the fee|ok, cancel b-1|Yes, please cancel the booking|go ahead - 500 to bob
好，转给对方张三|好请转""".replace("\n", "|")

NEITHER = """\
please confirm|Confirm please|Yes, please confirm|Please correct this|yes please correct|correct it
请确认|好的，请确认|可以吗|你确定吗|我要确认一下金额|无法同意|未确认|我没同意|没有确认|我去银行了|行程|银行
yes?|yes？|is that correct|you sure|who approved that|ok how much|yeah, right|we're ok
I'm fine, thanks|That's ok, thank you|yes if it is free|yes once my wife agrees|Yes but not now
sure thing, tomorrow|no problem|No more.|No changes please|never mind|ok never mind|Why not
not sure|no wait yes|yes no|don't stop|I don't mind|不错|不拒绝|好了好了|对不对
yes 👎|ok ❌|sure 🙄|👍👎|~~yes~~|yes_|yes1|ye s
yes/no|thanks|please|great
对吧|是吧|没错吧|没问题吧|可以吧|是的吧|不用吧|不要吧""".replace("\n", "|")

HIDDEN = ["", " ", "ok\u20e0", "y\u0336", "yes\u0338", "ok \u202eon\u202c", "\u2066yes\u2069",
          "yes\u200b", "yes " * 100]  # fmt: skip

NO = """\
No|NO!|n|nope|no thanks|No, thank you.|No, I don't.|I do not|please don't|sorry, no|That's wrong.
不|不要|不用了，谢谢|否|没有|不同意""".replace("\n", "|")


ORDERS = """\
Go ahead.|please proceed|You can proceed, thanks|Do it|Please do.|sounds good|By all means
继续|请办理，谢谢|please don't|Don't do it!|No, don't!|do not proceed|I refuse|I decline|I disagree
I don't agree|That's wrong.|No, that's wrong|incorrect|不要|不行|不同意|我拒绝|算了|不用了，谢谢
不，拒绝""".replace("\n", "|")


@pytest.mark.parametrize("said", ORDERS.split("|"))
def test_an_order_answers_a_call_and_no_question(said: str) -> None:
    """A user who answers "Do you object?" with "Don't do it!" hasn't said no."""
    assert reply_to(CONFIRM, said) == assent(said) is not None
    assert reply_to(ASK_USER, said) is None


@pytest.mark.parametrize(
    "said", ["Yes.", "OK, go ahead.", "No", "no thanks", "I do not", "不", "是的，请继续"]
)
def test_a_plain_answer_answers_both(said: str) -> None:
    assert reply_to(ASK_USER, said) == reply_to(CONFIRM, said) == assent(said) is not None


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        *((said, "yes") for said in YES.split("|")),
        *((said, "no") for said in NO.split("|")),
        *((said, None) for said in [*CORRECTIONS.split("|"), *NEITHER.split("|"), *HIDDEN]),
    ],
    ids=ascii,
)
def test_a_reply_is_a_yes_a_no_or_neither(said: str, reply: str | None) -> None:
    assert assent(said) == reply
