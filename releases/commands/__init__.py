"""The subcommands of `release`, one module a command."""
