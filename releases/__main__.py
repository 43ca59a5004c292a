"""`python -m releases` and the `release` command: the rest is imported here, so that Ctrl-C is heard from the start."""

import os
import sys

INTERRUPTED = 130


def main() -> None:
    """Import the commands (which takes a second) and run one."""
    # Read by huggingface_hub when it is imported. Else it asks the Hub who drives it, and keeps whatever it is told for
    # a day: an answer of another form would have every later call fail.
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    try:
        from releases.cli import main as run  # noqa: PLC0415
    except KeyboardInterrupt:
        print("interrupted: nothing was begun", file=sys.stderr)  # noqa: T201
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
