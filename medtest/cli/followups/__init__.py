"""Commands on follow-ups: sheets, exports, prompts, the store, libraries of cut-outs."""
