"""Outputs for continuous integration: JUnit XML, a Markdown summary, a result as JSON."""

JUNIT, SUMMARY, RESULT = "junit.xml", "summary.md", "result.json"
