"""Commands on follow-ups: sheets, exports, the store, cut-outs that relations paste."""
