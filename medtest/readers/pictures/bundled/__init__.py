"""The bundled reader of drawn scenes."""
