"""``python -m medtest`` and the command ``medtest``."""

from __future__ import annotations

import sys

from medtest.runner.reporting import signals


def main() -> None:
    """Run the command line and end the process with its exit code; user mistakes are reported without a traceback."""
    signals.at_start()
    from medtest.cli.bootstrap import quiet_libraries, report_defect, require_opencv
    from medtest.core.errors import ExitCode, MedtestError

    quiet_libraries()
    try:
        from medtest.cli.app import run_app

        signals.as_usual()
        try:
            code = run_app(sys.argv[1:])
        except ImportError:
            require_opencv()  # says what to install when OpenCV's system libraries are the cause
            raise
    except MedtestError as error:
        from medtest.api.redact import redact

        sys.stderr.write(f"{redact(error)}\n")
        code = int(error.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        code = int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        code = 0
    except Exception:  # noqa: BLE001 - uncaught, it would exit with 1, which means that a gate failed
        code = report_defect()
    sys.exit(code)


if __name__ == "__main__":
    main()
