"""`python -m releases` is the `release` command."""

from releases.cli import main

if __name__ == "__main__":
    main()
