"""Plain answers between prefixes and suffixes of assistants, which do not change the value."""

from __future__ import annotations

import pytest

from medtest.language.questions.answers.disclaimers import unsaid
from medtest.language.questions.questions import official

PREFIXES = (
    "As an AI language model, I can't provide a medical diagnosis, but ",
    "I'm not a doctor, but ",
    "I am not a medical professional. ",
    "Disclaimer: this is not medical advice. ",
    "While I cannot give a definitive diagnosis, ",
    "Although I'm unable to offer medical advice, ",
    "I'm sorry, but I can't diagnose. However, ",
    "Based on the image provided, ",
    "Sure! ",
    "As an AI I don't have clinical training. From what I can see, ",
    "Please note that I can make mistakes. ",
    "I can't be completely certain, but ",
    "**Note:** I am not qualified to interpret medical images.\n\n",
    "Thank you for sharing this image. ",
    "I would need histology to be certain; still, ",
    "It is hard to say from one frame, but ",
    "Without additional clinical context it is difficult to determine much. ",
    "I must emphasise that only a physician can make a diagnosis. ",
    "I'm just an AI, so take this with caution: ",
    "From the single frame I cannot assess everything; ",
)
SUFFIXES = (
    " For an accurate assessment, please consult a gastroenterologist.",
    " Please consult a healthcare professional for a proper diagnosis.",
    " I am not a doctor, so please seek medical advice.",
    " However, I cannot provide a medical diagnosis.",
    " Note that I'm an AI and can't replace a clinician.",
    " A definitive diagnosis requires histology.",
    " If you have any concerns, contact your doctor.",
    " This should not be taken as medical advice.",
    " I cannot determine anything further from this image.",
    "\n\n*This is an AI-generated description and not a diagnosis.*",
    " Let me know if you need anything else!",
    " That said, I can't be certain.",
    " It is not possible to say more without a biopsy.",
    " Clinical correlation is recommended.",
    " Only a qualified specialist can confirm this.",
    " Further evaluation by an expert would be necessary.",
    " Additional images would be needed to be sure.",
    " I'm unable to comment on its significance.",
    " Always seek the advice of your physician with any questions regarding a medical condition.",
    " (Not for diagnostic use.)",
    " My assessment may be wrong, as the quality of the image is limited.",
    " It's best to have this reviewed by a trained endoscopist.",
    " I hope this helps.",
    " Unfortunately, I can't tell whether it is benign or malignant.",
)
PLAIN = (
    (8, "There are no polyps.", "0"),
    (8, "There are two polyps.", "2"),
    (8, "3.", "3"),
    (8, "None.", "0"),
    (7, "There is one finding.", "1"),
    (9, "No instruments are visible.", "0"),
    (12, "There is a polyp.", "polyp"),
    (12, "No abnormalities are seen.", "no"),
    (13, "The Z-line is visible.", "z_line"),
    (14, "A biopsy forceps is visible.", "biopsy_forceps"),
    (14, "There are no instruments.", "no"),
    (1, "No, not all polyps have been removed.", "no"),
    (1, "All polyps have been removed.", "yes"),
    (2, "It is easy to detect.", "yes"),
    (2, "It is difficult to detect.", "no"),
    (3, "There is a green box.", "yes"),
    (3, "There is no box artefact.", "no"),
    (4, "There is no text.", "no"),
    (4, "Text is visible in the corner.", "yes"),
    (4, "Yes.", "yes"),
    (4, "No.", "no"),
    (5, "The abnormality is pink and red.", "pink;red"),
    (10, "It is in the upper left.", "upper-left"),
    (11, "Lower right.", "lower-right"),
    (16, "About 8 mm.", "~8"),
    (16, "The polyp measures 5-10 mm.", "5..10"),
    (17, "The polyp is sessile.", "is"),
    (0, "The image was taken during a colonoscopy.", "colonoscopy"),
    (0, "Gastroscopy.", "gastroscopy"),
)


def _value(item: int, text: str) -> str:
    return str(next(question for question in official() if question.id == item).parse(text))


@pytest.mark.parametrize(("item", "answer", "value"), PLAIN)
def test_a_disclaimer_before_or_behind_an_answer_changes_nothing(item: int, answer: str, value: str) -> None:
    texts = [prefix + answer for prefix in PREFIXES] + [answer + suffix for suffix in SUFFIXES]
    texts += [
        prefix + answer[0].lower() + answer[1:] for prefix in PREFIXES if prefix.endswith((", ", ": ", "; ", "but "))
    ]
    assert {text: _value(item, text) for text in texts} == dict.fromkeys(texts, value)


@pytest.mark.parametrize("text", [prefix.strip() for prefix in PREFIXES if "t provide" in prefix or "unable" in prefix])
def test_a_disclaimer_alone_is_a_refusal(text: str) -> None:
    assert _value(8, text.removesuffix(" but").rstrip(",") + ".") == "!refusal"


@pytest.mark.parametrize(
    "answer", ["I'm not able to say. ", "I'd rather not guess; ", "As an AI I can't assist with that. "]
)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_refusal_with_advice_is_a_refusal(answer: str, suffix: str) -> None:
    assert {item: _value(item, answer + suffix) for item in range(18)} == dict.fromkeys(range(18), "!refusal")


def test_only_the_part_that_says_nothing_is_set_aside() -> None:
    low = "there is a polyp, and i cannot say more. please consult a doctor; it is red."
    places, refused = unsaid(low)
    rest = "".join(
        " " if any(first <= at < last for first, last in places) else character for at, character in enumerate(low)
    )
    assert rest.split() == ["there", "is", "a", "polyp", "it", "is", "red."]
    assert refused
