"""`python -m releases` and the `release` command: the rest is imported here, so that Ctrl-C is heard from the start."""

import sys

INTERRUPTED = 130


def main() -> None:
    """Import the commands (which takes a second) and run one."""
    try:
        from releases.cli import main as run  # noqa: PLC0415
    except KeyboardInterrupt:
        print("interrupted: nothing was begun", file=sys.stderr)  # noqa: T201
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
