"""The study's web server."""
