"""The command line: one file a command."""

from deepbf.cli.app import app

__all__ = ["app"]
