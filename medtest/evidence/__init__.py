"""Technical files: frozen plans, the evidence document, its software list and signature."""
