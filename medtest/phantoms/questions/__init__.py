"""Pictures of colonoscopy and gastroscopy with the true answers to the 18 questions of MEDVQA-GI."""

from medtest.phantoms.questions.answers import NOT_RELEVANT, QUESTIONS
from medtest.phantoms.questions.generator import REVISION, SIZE, QuestionPhantom, make, plan

__all__ = ["NOT_RELEVANT", "QUESTIONS", "REVISION", "SIZE", "QuestionPhantom", "make", "plan"]
