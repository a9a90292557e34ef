"""The profile in the window: learned, proposed, accepted, sent, and forgotten with its source."""

from app.domain.ids import ConversationId
from app.domain.workers import WorkerName
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_script import text
from tests.fakes.user import User

ABOUT_ME = "My name is Ada Lindqvist. I live in Gothenburg. I am allergic to walnuts."
WALNUTS = "I am allergic to walnuts"


def system_of(server: Loopback) -> str:
    return str(server.posts[-1].body["messages"][0]["content"])


async def test_a_profile_is_learned_accepted_sent_forgotten(user: User, server: Loopback) -> None:
    await user.start_with_model(server.v1)
    await user.ask(lambda services: services.settings.set("summarizer_quiet_minutes", 0))
    server.reply(text("Nice to meet you."))
    await user.say(ABOUT_ME)
    await user.answered(0, "Nice to meet you.")
    assert WALNUTS not in system_of(server)
    await user.ask(lambda services: services.workers.run_now(WorkerName.KNOWLEDGE_EXTRACTOR))
    await user.until_so(lambda services: services.profile.state().proposal)

    user.action("activity").trigger()
    await user.sees("Review 1 proposal for memory…")
    user.click("Review 1 proposal for memory…")
    await user.sees("3 proposed changes", WALNUTS)
    user.click("Accept")
    await user.until_so(lambda services: len(services.profile.lines()) == 3)
    await user.sees_no_more("3 proposed changes")

    user.action("new").trigger()
    server.reply(text("Hello again."))
    await user.say("Good morning")
    await user.answered(0, "Hello again.")
    assert WALNUTS in system_of(server)
    user.action("activity").trigger()
    before = system_of(server)
    server.reply(text("Still here."))
    await user.say("And now?")
    await user.answered(1, "Still here.")
    assert system_of(server) == before, "the prefix stays the same"

    await user.ask(lambda services: services.forget([ConversationId(1)]))
    server.reply(text("Gone."))
    await user.say("Who am I?")
    await user.answered(2, "Gone.")
    assert "Ada" not in system_of(server)
    user.action("profile").trigger()
    await user.sees("Use the profile in conversations")
    await user.until(lambda: WALNUTS not in user.screen())


async def test_a_standing_instruction_is_offered_and_obeyed_once_accepted(
    user: User, server: Loopback
) -> None:
    await user.start_with_model(server.v1)
    server.always(text("Fine."))
    await user.say("From now on always answer in bullet points.")
    await user.answered(0, "Fine.")
    user.action("new").trigger()
    offer = user.window.offer
    await user.until(lambda: "bullet points" in offer.open.accessibleName())
    await user.ask(lambda services: services.profile.turn(on=False))
    await user.until(offer.isHidden)
    await user.ask(lambda services: services.profile.turn(on=True))
    await user.until(lambda: not offer.isHidden())
    await user.ask(lambda services: services.library.delete(ConversationId(1)))
    await user.until(offer.isHidden)
    await user.ask(lambda services: services.library.restore(ConversationId(1)))
    await user.until(lambda: not offer.isHidden())
    offer.open.click()
    await user.sees("1 proposed change", "From now on always answer in bullet points.")
    user.click("Accept")
    await user.until_so(lambda services: services.profile.lines())
    await user.say("Good morning")
    await user.answered(0, "Fine.")
    assert "From now on always answer in bullet points." in system_of(server)
