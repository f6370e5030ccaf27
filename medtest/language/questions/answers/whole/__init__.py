"""Whether an answer is understood whole: what is left over makes it ``unparsed``."""
