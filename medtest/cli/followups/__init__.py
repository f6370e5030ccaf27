"""Commands on follow-ups: sheets, exports, the store, libraries of cut-outs."""
