"""The task file's template: a Python file like any other, whose constant lines `builder.tasks` replaces."""
