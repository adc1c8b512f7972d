"""The command line: a file for each command, or for two that belong together."""

from deepbf.cli.app import app

__all__ = ["app"]
