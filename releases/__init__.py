"""What happens to a release: number it, diff it, publish it, verify it for ever. The `release` command."""
