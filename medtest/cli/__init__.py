"""The command line: ``medtest`` (:mod:`medtest.cli.app`) and a run of a suite (:mod:`medtest.cli.run.launch`)."""
