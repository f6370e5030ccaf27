"""The bundled reader for drawn scenes."""
